// Committing: aggregates the chosen updates, writes the new head, and prepares what is said of it once that is durable.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/phases/phases.h"
#include "coordinator/round_inputs.h"
#include "coordinator/round_plans.h"
#include "coordinator/sessions.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Committing : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCommitting; }

  Transition Enter(EngineState& run) override {
    const RoundInputs inputs = InputsOf(run);
    if (inputs.messages.empty()) return GiveUp(run, "every update of the round was refused");
    absl::StatusOr<ServerStep::Result> step =
        run.model.server().MakeStep(run.model.head().version, run.model.weights(), inputs.messages, inputs.samples,
                                    inputs.total, run.round.plan().choice);
    if (absl::IsInvalidArgument(step.status())) return GiveUp(run, std::string(step.status().message()));
    TERSE_RETURN_IF_ERROR(step.status());
    TERSE_FAILPOINT("coordinator.commit.aggregated");

    Commit commit = MakeCommit(run, inputs, HashWeights(step->weights), std::move(step->downstream));
    TERSE_RETURN_IF_ERROR(ObserveCommit(run, commit.committed_us));
    absl::optional<Ending> ending = EndAt(run, run.model.head().version + 1);
    const bool last = ending.has_value();
    const bool open_next = !last && !run.course.paused;
    if (open_next) commit.next_plan = NextPlan(run);
    TERSE_RETURN_IF_ERROR(run.store()->CommitRound(commit, open_next));
    TERSE_FAILPOINT("coordinator.commit.done");

    const int64_t round = run.round.number();
    const auto message = std::make_shared<const std::string>(std::move(commit.downstream));
    run.model.Advance(std::move(step->weights), commit.model_hash, message);
    TERSE_RETURN_IF_ERROR(AddToHistories(run));
    TERSE_RETURN_IF_ERROR(Announce(run, message));
    run.course.unusable_rounds = 0;
    if (open_next) run.round.Open(commit.committed_us, std::move(commit.next_plan));
    if (last) run.course.ending = std::move(ending);
    FollowUp(run, round, last);
    return last ? PhaseName::kFinishing : open_next ? PhaseName::kCollecting : PhaseName::kSelecting;
  }

 private:
  static Commit MakeCommit(EngineState& run, const RoundInputs& inputs, Id128 model_hash, std::string downstream) {
    BookWire(run);
    // Dense bytes are those of the iterations that reach the model, so an aborted round saves nothing.
    for (const auto& [client, received] : run.round.updates()) run.book().AddUp(client, 0, run.DenseBytesPerRound());
    Commit commit;
    commit.round = run.round.number();
    commit.base_version = run.model.head().version;
    commit.model_hash = model_hash;
    commit.downstream = std::move(downstream);
    commit.aggregate = run.model.server().RoundMessages(inputs.messages, inputs.samples, inputs.total);
    commit.committed_us = run.Now();
    commit.ledger = run.book().Take(run.round.number());
    commit.history = MessagesForHistories(run);
    return commit;
  }

  // Verdicts and the new model, and the round is over. They travel with what the next phase has to say.
  static absl::Status Announce(EngineState& run, const std::shared_ptr<const std::string>& message) {
    const Fleet::Bulk bulk(&run.fleet);
    run.fleet.SetHead(run.model.head().version);
    TellApplied(run);
    TERSE_RETURN_IF_ERROR(SpreadHead(run, message));
    run.SettleRound(/*keep_updates=*/false);
    return absl::OkStatus();
  }

  // Off the round's path: evaluation and checkpoint.
  static void FollowUp(EngineState& run, int64_t round, bool last) {
    if (last || run.model.head().version % run.config->evaluate_every == 0) run.BeginEvaluation(round);
    BeginCheckpointIfDue(run);
  }
};

}  // namespace

std::unique_ptr<Phase> MakeCommitting() { return std::make_unique<Committing>(); }

}  // namespace terse
