#include "coordinator/round_inputs.h"

#include <algorithm>

#include "coordinator/engine_state.h"
#include "coordinator/staleness.h"
#include "core/aggregation_facts.h"
#include "core/epochs.h"

namespace terse {
namespace {

// Whether an update stands for the clients below a relay, and the rule can weigh it accordingly.
bool WeighsCohorts(const EngineState& run) {
  if (!FactsOf(run.config->aggregation.rule).is_average) return false;
  const Round::Updates& updates = run.round.updates();
  return std::any_of(updates.begin(), updates.end(),
                     [](const auto& one) { return one.second.update.cohort.clients > 0; });
}

}  // namespace

CohortFacts CohortOf(const ReceivedUpdate& received) {
  if (received.update.cohort.clients > 0) return received.update.cohort;
  return {1, std::max<int64_t>(1, received.samples)};
}

RoundInputs InputsOf(const EngineState& run) {
  const ClientTask task = TaskFrom(*run.config, run.model.head().version);
  const bool by_samples = run.config->rounds.weighting == Weighting::kSamples || task == ClientTask::kFullGradient;
  const bool by_clients = !by_samples && WeighsCohorts(run);
  const Round::Updates& updates = run.round.updates();
  const bool by_age =
      !by_samples && task != ClientTask::kGradientStep &&
      std::any_of(updates.begin(), updates.end(), [](const auto& one) { return one.second.staleness > 0; });
  RoundInputs inputs;
  for (const auto& [client, received] : updates) {
    inputs.messages.insert(inputs.messages.end(), received.count, received.update.bytes());
    if (!by_samples && !by_clients && !by_age) continue;
    const int64_t weight = by_samples ? received.samples : by_clients ? CohortOf(received).clients : 1;
    inputs.samples.insert(inputs.samples.end(), received.count,
                          by_age ? weight * StaleShare(received.staleness) : weight);
    if (by_age) inputs.total += kFreshShare * weight * received.count;
  }
  return inputs;
}

}  // namespace terse
