// Committing: aggregates the chosen updates, makes the new head durable, and only then announces it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/phases/phases.h"
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

  Transition Enter(RunContext& run) override {
    const Chosen chosen = ChosenOf(run);
    if (chosen.messages.empty()) return GiveUp(run, "every update of the round was refused");
    absl::StatusOr<ServerStep::Taken> taken =
        run.server->Take(run.head.version, run.weights, chosen.messages, chosen.samples, chosen.total, run.plan.choice);
    if (absl::IsInvalidArgument(taken.status())) return GiveUp(run, std::string(taken.status().message()));
    TERSE_RETURN_IF_ERROR(taken.status());
    TERSE_FAILPOINT("coordinator.commit.aggregated");

    Commit commit = MakeCommit(run, chosen, HashWeights(taken->weights), std::move(taken->downstream));
    TERSE_RETURN_IF_ERROR(ObserveCommit(run, commit.committed_us));
    absl::optional<Ending> ending = EndAt(run, run.head.version + 1);
    const bool last = ending.has_value();
    const bool open_next = !last && !run.paused;
    if (open_next) commit.next_plan = NextPlan(run);
    TERSE_RETURN_IF_ERROR(run.store->CommitRound(commit, open_next));
    TERSE_FAILPOINT("coordinator.commit.done");

    const int64_t round = run.round;
    run.weights = std::move(taken->weights);
    run.head.version += 1;
    run.head.model_hash = commit.model_hash;
    TERSE_RETURN_IF_ERROR(AddToHistories(run));
    TERSE_RETURN_IF_ERROR(Announce(run, std::move(commit.downstream)));
    TakeNotes(run);
    run.received.clear();
    run.invited.clear();
    run.unusable_rounds = 0;
    run.round_open = open_next;
    if (open_next) {
      run.round += 1;
      run.round_opened_us = commit.committed_us;
      TakePlan(run, std::move(commit.next_plan));
    }
    if (last) run.ending = std::move(ending);
    FollowUp(run, round, last);
    return last ? PhaseName::kFinishing : open_next ? PhaseName::kCollecting : PhaseName::kSelecting;
  }

 private:
  // The updates give no model. Nothing is lost, but where training diverged, further rounds only cost traffic. An
  // operator decides: what made the rounds unusable may be over, or a client to set aside.
  static Transition GiveUp(RunContext& run, const std::string& reason) {
    TERSE_RETURN_IF_ERROR(Abort(run, reason));
    if (++run.unusable_rounds >= kMostUnusableRounds && !run.paused) {
      TERSE_RETURN_IF_ERROR(Pause(run, absl::StrCat(run.unusable_rounds, " rounds in a row gave no model: ", reason)));
    }
    return PhaseName::kSelecting;
  }

  // Takes notes of the updates that were applied.
  static void TakeNotes(RunContext& run) {
    for (const auto& [client, received] : run.received) {
      ClientNotes& notes = run.notes[client];
      notes.folded = 0;
      notes.norm = received.update.norm;
      notes.norm_steps = run.plan.local_steps;
      notes.norm_choice = run.plan.choice;
    }
  }

  // The inputs of a round's step. The views are of run.received.
  struct Chosen {
    std::vector<absl::string_view> messages;
    std::vector<int64_t> samples;  // empty: the plain average
    int64_t total = 0;             // that they are shares of; 0: their sum
  };

  static Chosen ChosenOf(const RunContext& run) {
    Chosen chosen;
    const ClientTask task = TaskFrom(*run.config, run.head.version);
    const bool weighted = run.config->rounds.weighting == Weighting::kSamples || task == ClientTask::kFullGradient;
    bool stale = false;
    for (const auto& [client, received] : run.received) {
      chosen.messages.insert(chosen.messages.end(), received.count, received.update.message);
      if (weighted) chosen.samples.insert(chosen.samples.end(), received.count, received.samples);
      stale = stale || received.staleness > 0;
    }
    if (!stale || task == ClientTask::kGradientStep) return chosen;
    for (const auto& [client, received] : run.received) {
      chosen.samples.insert(chosen.samples.end(), received.count, StaleShare(received.staleness));
    }
    chosen.total = kFreshShare * static_cast<int64_t>(chosen.messages.size());
    return chosen;
  }

  static Commit MakeCommit(RunContext& run, const Chosen& chosen, Id128 model_hash, std::string downstream) {
    BookWire(run);
    // Dense bytes are those of the iterations that reach the model, so an aborted round saves nothing.
    for (const auto& [client, received] : run.received) run.book.AddUp(client, 0, run.DenseBytesPerRound());
    Commit commit;
    commit.round = run.round;
    commit.base_version = run.head.version;
    commit.model_hash = model_hash;
    commit.downstream = std::move(downstream);
    commit.aggregate = run.server->Aggregate(chosen.messages, chosen.samples, chosen.total);
    commit.committed_us = run.Now();
    commit.ledger = run.book.Take(run.round);
    commit.history = MessagesForHistories(run);
    return commit;
  }

  // Verdicts and the new model, to everyone who held the old one and listens. They travel with what the next phase has
  // to say. A message that is too large to be sent goes to nobody: they get the checkpoint of this model.
  static absl::Status Announce(RunContext& run, std::string downstream) {
    const auto message = std::make_shared<const std::string>(std::move(downstream));
    for (auto& [id, session] : run.sessions) {
      const auto it = run.received.find(session.client);
      if (it != run.received.end()) {
        const Id128 applied = it->second.update.update_id;
        session.last_applied = applied;
        session.applied_unheard = session.applied_unheard || !session.said_ready;
        session.link->SendLater(Verdict{Outcome::kApplied, applied, applied, ""});
      }
      if (run.config->rounds.buffered && !run.IsFree(session)) continue;  // BringUp, once it has delivered
      if (session.version != run.head.version - 1) continue;
      if (static_cast<int64_t>(message->size()) > run.most_log_bytes) {
        TERSE_RETURN_IF_ERROR(BringUp(run, session));
        continue;
      }
      run.book.AddDown(session.client, message->size(), run.DenseBytesPerRound());
      session.link->SendLater(Delta{run.head.version, run.head.model_hash, message});
      session.version = run.head.version;
    }
    return absl::OkStatus();
  }

  // Off the round's path: evaluation and checkpoint.
  static void FollowUp(RunContext& run, int64_t round, bool last) {
    if (last || run.head.version % run.config->evaluate_every == 0) {
      run.evaluating = round;
      run.background->Evaluate(round, run.weights);
    }
    const bool due = run.head.version - run.checkpoint_version >= run.config->checkpoint_every;
    if (due && StandsAlone(*run.config, run.head.version)) run.BeginCheckpoint();
  }
};

}  // namespace

std::unique_ptr<Phase> MakeCommitting() { return std::make_unique<Committing>(); }

}  // namespace terse
