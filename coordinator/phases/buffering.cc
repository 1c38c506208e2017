// Collecting for buffered rounds: every free client has work, and the round closes with the first updates that fill the
// buffer, whichever round they were begun in. Clients that still train go on.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/catch_up.h"
#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "core/epochs.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

class Buffering : public Intake {
 public:
  Transition Enter(EngineState& run) override {
    TERSE_RETURN_IF_ERROR(Begin(run));
    // A round that an aborted one, or a pause, left a full buffer has no work to give.
    const bool full = IsFull(run);
    if (!full) TERSE_RETURN_IF_ERROR(EmployAll(run));
    // Updates that an aborted round left may be all that come.
    return full || IsComplete(run) ? CloseRound(run) : absl::nullopt;
  }

  Transition OnReady(EngineState& run, Session& session) override { return Stay(EmployAll(run)); }

  // After the deadline only an update can change anything, and a pause, which ticks.
  int64_t DeadlineMicros(const EngineState& run) const override {
    return std::min(CompleteMicros(run), looked_us_ < Deadline(run) ? Deadline(run) : kNever);
  }

 protected:
  Transition Proceed(EngineState& run) override {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(EmployAll(run));
  }

 private:
  // Gives the clients work that are free and have not delivered.
  static absl::Status EmployAll(EngineState& run) {
    const auto clients = run.fleet.groups().Select([](Standing s) { return s.spare && !s.delivered; });
    for (int64_t client : clients) {
      Session& session = *run.fleet.Of(client);
      TERSE_RETURN_IF_ERROR(BringUp(run, session));
      if (!run.CanWork(session)) continue;  // it loads a checkpoint first
      Assign(run, session);
    }
    return absl::OkStatus();
  }

  // Updates that close the round before its deadline. A full gradient is the whole fleet's.
  static int64_t Wanted(const EngineState& run) {
    const bool gradient = TaskFrom(*run.config, run.model.head().version) == ClientTask::kFullGradient;
    return gradient ? run.config->rounds.clients : run.config->rounds.cohort;
  }

  static bool IsFull(const EngineState& run) { return run.round.size() >= Wanted(run); }

  // With a full buffer at once, and with a quorum when nobody else is on the way; with one from the deadline on.
  // Without one the round stays open, unless the run is paused.
  Transition CloseIfDue(EngineState& run) {
    const RoundPolicy& policy = run.config->rounds;
    if (IsFull(run)) return CloseRound(run);
    const int64_t received = run.round.size();
    if (!DeadlinePassed(run)) return IsComplete(run) ? CloseRound(run) : absl::nullopt;
    if (received >= policy.quorum) return CloseRound(run);
    const std::string few =
        absl::StrCat(received, " of ", policy.quorum, " updates that the quorum needs came before ");
    if (run.course.paused) return OnAbort(run, absl::StrCat(few, "the pause"));
    if (!std::exchange(noted_, true))
      TERSE_RETURN_IF_ERROR(run.Note(event::kRoundWaits, -1, absl::StrCat(few, "the deadline")));
    return absl::nullopt;
  }

  bool noted_ = false;  // that it waits beyond its deadline
};

}  // namespace

std::unique_ptr<Phase> MakeBuffering() { return std::make_unique<Buffering>(); }

}  // namespace terse
