#include "coordinator/round_plans.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/control/controller_table.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

// Rounds that are read at a time, so that a long run's do not all lie in memory.
constexpr int64_t kPage = 1024;

absl::StatusOr<RoundPlan> PlanOf(const RoundRecord& round) {
  if (round.plan.has_value()) return *round.plan;
  return absl::DataLossError(
      absl::StrCat("round ", round.id, " has no plan of the controller: restore the state directory from a backup"));
}

absl::StatusOr<RoundOutcome> OutcomeOf(const RoundRecord& round, int64_t committed_us) {
  TERSE_ASSIGN_OR_RETURN(RoundPlan plan, PlanOf(round));
  const int64_t duration = std::max<int64_t>(0, committed_us - round.opened_us);
  return RoundOutcome{round.id, std::move(plan), round.updates, round.update_bytes, round.train_loss, duration};
}

absl::Status ObserveStored(EngineState& run) {
  for (int64_t first = 1; first <= run.round.number(); first += kPage) {
    const int64_t last = std::min(run.round.number(), first + kPage - 1);
    TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, run.store()->Rounds(first, last));
    for (const RoundRecord& round : rounds) {
      TERSE_ASSIGN_OR_RETURN(RoundPlan plan, PlanOf(round));
      run.round.SetPlan(std::move(plan));
      if (round.state != RoundState::kCommitted) continue;
      TERSE_ASSIGN_OR_RETURN(const RoundOutcome outcome, OutcomeOf(round, round.committed_us));
      if (!Mutated(Mutant::kForgetRounds)) run.course.controller->Observe(outcome);
      run.course.iterations += outcome.plan.local_steps;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResumePlans(EngineState& run) {
  RoundPlan plan;
  plan.local_steps = run.config->train.local_steps;
  run.round.SetPlan(std::move(plan));
  run.course.iterations = 0;
  if (!run.relay.has_value()) {
    TERSE_ASSIGN_OR_RETURN(run.course.controller, MakeController(*run.config, run.model.layout().size()));
  }
  if (run.course.controller != nullptr) return ObserveStored(run);
  run.course.iterations = run.model.head().version * run.round.plan().local_steps;
  return absl::OkStatus();
}

absl::optional<RoundPlan> NextPlan(const EngineState& run) {
  if (run.relay.has_value()) return run.relay->order->plan;
  if (run.course.controller == nullptr) return absl::nullopt;
  return run.course.controller->Decide(run.round.number() + 1, run.course.iterations);
}

absl::Status ObserveCommit(EngineState& run, int64_t now_us) {
  if (run.course.controller == nullptr) {
    run.course.iterations += run.round.plan().local_steps;
    return absl::OkStatus();
  }
  const int64_t number = run.round.number();
  TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> rounds, run.store()->Rounds(number, number));
  if (rounds.empty()) return absl::DataLossError(absl::StrCat("round ", number, " has no row"));
  TERSE_ASSIGN_OR_RETURN(const RoundOutcome outcome, OutcomeOf(rounds.front(), now_us));
  run.course.controller->Observe(outcome);
  run.course.iterations += outcome.plan.local_steps;
  return absl::OkStatus();
}

}  // namespace terse
