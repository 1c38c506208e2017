// Finishing: tells the clients that the run is over, waits for the last evaluation and checkpoint, and ends the run.
#include <string>
#include <vector>

#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "core/epochs.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

class Finishing : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kFinishing; }

  Transition Enter(RunContext& run) override {
    // A run that was ended early, or that ended while its process was down, lacks the last evaluation.
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundRecord> round, RoundOfHead(run));
    if (round.has_value() && !round->evaluated() && run.evaluating != round->id) {
      run.evaluating = round->id;
      run.background->Evaluate(round->id, run.weights);
    }
    for (auto& [id, session] : run.sessions) TERSE_RETURN_IF_ERROR(OnReady(run, session).status());
    FlushAll(run);
    return OnBackground(run);
  }

  Transition OnReady(RunContext& run, Session& session) override {
    TERSE_RETURN_IF_ERROR(BringUp(run, session));
    if (session.version == run.head.version) session.link->Send(Finished{run.ending->reason});
    return absl::nullopt;
  }

  Transition OnBackground(RunContext& run) override {
    const bool due = run.checkpoint_version < run.head.version && StandsAlone(*run.config, run.head.version);
    if (due) run.BeginCheckpoint();
    if (run.evaluating.has_value() || run.checkpoint_running || ended_) return absl::nullopt;
    ended_ = true;
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run.store->Run());
    if (record->state == run.ending->state) return absl::nullopt;  // ended by an earlier process
    TERSE_RETURN_IF_ERROR(run.store->SetRunState(run.ending->state, run.ending->reason));
    TERSE_RETURN_IF_ERROR(run.Note(event::kRunEnded, -1, run.ending->reason));
    return absl::nullopt;
  }

 private:
  // The round that made the head's model; aborted ones may have followed it. nullopt for version 0.
  static absl::StatusOr<absl::optional<RoundRecord>> RoundOfHead(RunContext& run) {
    for (int64_t id = run.round; id > 0; --id) {
      TERSE_ASSIGN_OR_RETURN(const std::vector<RoundRecord> found, run.store->Rounds(id, id));
      if (!found.empty() && found[0].state == RoundState::kCommitted) return absl::make_optional(found[0]);
    }
    return absl::optional<RoundRecord>();
  }

  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Phase> MakeFinishing() { return std::make_unique<Finishing>(); }

}  // namespace terse
