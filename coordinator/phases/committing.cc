// Committing: aggregates the chosen updates, writes the new head, and prepares what is said of it once that is durable.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/phases/phases.h"
#include "coordinator/round_inputs.h"
#include "coordinator/round_plans.h"
#include "coordinator/sessions.h"
#include "coordinator/staleness.h"
#include "core/epochs.h"
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
  // The updates give no model. Nothing is lost, but where training diverged, further rounds only cost traffic. An
  // operator decides: what made the rounds unusable may be over, or a client to set aside.
  static Transition GiveUp(EngineState& run, const std::string& reason) {
    TERSE_RETURN_IF_ERROR(Abort(run, reason));
    const int64_t unusable = ++run.course.unusable_rounds;
    if (unusable >= kMostUnusableRounds && !run.course.paused) {
      TERSE_RETURN_IF_ERROR(Pause(run, absl::StrCat(unusable, " rounds in a row gave no model: ", reason)));
    }
    return PhaseName::kSelecting;
  }

  static RoundInputs InputsOf(const EngineState& run) {
    RoundInputs inputs;
    const ClientTask task = TaskFrom(*run.config, run.model.head().version);
    const bool weighted = run.config->rounds.weighting == Weighting::kSamples || task == ClientTask::kFullGradient;
    bool stale = false;
    for (const auto& [client, received] : run.round.updates()) {
      inputs.messages.insert(inputs.messages.end(), received.count, received.update.bytes());
      if (weighted) inputs.samples.insert(inputs.samples.end(), received.count, received.samples);
      stale = stale || received.staleness > 0;
    }
    if (!stale || task == ClientTask::kGradientStep) return inputs;
    for (const auto& [client, received] : run.round.updates()) {
      inputs.samples.insert(inputs.samples.end(), received.count, StaleShare(received.staleness));
    }
    inputs.total = kFreshShare * static_cast<int64_t>(inputs.messages.size());
    return inputs;
  }

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

  // Verdicts and the new model, to everyone who held the old one and listens, and the round is over. They travel with
  // what the next phase has to say.
  static absl::Status Announce(EngineState& run, const std::shared_ptr<const std::string>& message) {
    const Fleet::Bulk bulk(&run.fleet);
    run.fleet.SetHead(run.model.head().version);
    for (const auto& [client, received] : run.round.updates()) TakeNotes(run, client, received.update);
    for (const auto& [id, session] : run.fleet.sessions()) {
      if (run.config->rounds.buffered && !session->IsFree()) continue;  // BringUp, once it has delivered
      if (session->version() == run.model.head().version - 1) TERSE_RETURN_IF_ERROR(SendModel(run, *session, message));
    }
    run.SettleRound(/*keep_updates=*/false);
    return absl::OkStatus();
  }

  // The client's update is applied.
  static void TakeNotes(EngineState& run, int64_t client, const Update& update) {
    ClientNotes& notes = run.fleet.NotesOf(client);
    notes.folded = 0;
    notes.norm = update.norm;
    notes.norm_steps = run.round.plan().local_steps;
    notes.norm_choice = run.round.plan().choice;
    run.fleet.SetReliability(client, ReliabilityAfterDelivery(run.fleet.at(client).reliability));
    Session* const session = run.fleet.Of(client);
    if (session == nullptr) return;
    session->last_applied = update.update_id;
    session->applied_unheard = session->applied_unheard || !session->said_ready;
    run.journal.Say(session->link, Verdict{Outcome::kApplied, update.update_id, update.update_id, ""});
  }

  // A message that is too large to be sent goes to nobody: they get the checkpoint of this model. A client that has not
  // read what it was sent before gets the log, or a checkpoint, once it has.
  static absl::Status SendModel(EngineState& run, Session& session, const std::shared_ptr<const std::string>& message) {
    if (static_cast<int64_t>(message->size()) > run.most_log_bytes) return BringUp(run, session);
    if (session.link->WaitingBytes() > run.catch_up_bytes) {
      run.fleet.SetDraining(session, true);
      run.journal.TellWhenDrained(session.link);
      return absl::OkStatus();
    }
    const Head& head = run.model.head();
    run.book().AddDown(session.client(), static_cast<int64_t>(message->size()), run.DenseBytesPerRound());
    run.journal.Say(session.link, Downstream{head.version, head.model_hash, message});
    run.fleet.SetVersion(session, head.version);
    return absl::OkStatus();
  }

  // Off the round's path: evaluation and checkpoint.
  static void FollowUp(EngineState& run, int64_t round, bool last) {
    const int64_t head = run.model.head().version;
    if (last || head % run.config->evaluate_every == 0) run.BeginEvaluation(round);
    const bool due = head - run.model.checkpoint_version() >= run.config->checkpoint_every;
    if (due && StandsAlone(*run.config, head)) run.BeginCheckpoint();
  }
};

}  // namespace

std::unique_ptr<Phase> MakeCommitting() { return std::make_unique<Committing>(); }

}  // namespace terse
