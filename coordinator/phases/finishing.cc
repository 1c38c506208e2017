// Finishing: tells the clients that the run is over, waits for the last evaluation and checkpoint, and ends the run.
#include <string>
#include <vector>

#include "coordinator/catch_up.h"
#include "coordinator/phases/phases.h"
#include "core/epochs.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

class Finishing : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kFinishing; }

  Transition Enter(EngineState& run) override {
    // A run that was ended early, or that ended while its process was down, lacks the last evaluation.
    TERSE_RETURN_IF_ERROR(EvaluateHead(run));
    for (const auto& [id, session] : run.fleet.sessions()) TERSE_RETURN_IF_ERROR(OnReady(run, *session).status());
    return OnBackground(run);
  }

  Transition OnReady(EngineState& run, Session& session) override {
    TERSE_RETURN_IF_ERROR(BringUp(run, session));
    if (session.version() == run.model.head().version)
      run.journal.Say(session.link, Finished{run.course.ending->reason});
    return absl::nullopt;
  }

  Transition OnBackground(EngineState& run) override {
    const int64_t head = run.model.head().version;
    if (run.model.checkpoint_version() < head && StandsAlone(*run.config, head)) run.BeginCheckpoint();
    if (!run.model.evaluating().empty() || run.model.checkpoint_running() || ended_) return absl::nullopt;
    ended_ = true;
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> record, run.store()->Run());
    if (record->state == run.course.ending->state) return absl::nullopt;  // ended by an earlier process
    TERSE_RETURN_IF_ERROR(run.store()->SetRunState(run.course.ending->state, run.course.ending->reason));
    TERSE_RETURN_IF_ERROR(run.Note(event::kRunEnded, -1, run.course.ending->reason));
    return absl::nullopt;
  }

 private:
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Phase> MakeFinishing() { return std::make_unique<Finishing>(); }

}  // namespace terse
