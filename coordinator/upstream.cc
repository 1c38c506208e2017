#include "coordinator/upstream.h"

#include <algorithm>

#include "core/aggregation_facts.h"

namespace terse {

RunConfig RelayConfig(RunConfig run, const RelayRounds& rounds) {
  RoundPolicy& policy = run.rounds;
  // Clients allow for as many updates in a message as the run above has clients.
  policy.clients = std::max(policy.clients, rounds.clients);
  policy.cohort = policy.invited = rounds.clients;
  const int64_t half = std::max((rounds.clients + 1) / 2, LeastUpdates(run.aggregation));
  policy.quorum = std::min(rounds.clients, rounds.quorum > 0 ? rounds.quorum : half);
  policy.deadline_seconds = rounds.deadline_seconds > 0 ? rounds.deadline_seconds : 0.8 * policy.deadline_seconds;
  policy.grace_seconds = 0;
  policy.selection = Selection::kAll;
  policy.buffered = false;
  run.limits = RunLimits();
  return run;
}

}  // namespace terse
