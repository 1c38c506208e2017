// Collecting for buffered rounds: every free client has work, and the round closes with the first updates that fill the
// buffer, whichever round they were begun in. Clients that still train go on.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "core/epochs.h"
#include "core/status.h"
#include "storage/event_kinds.h"

namespace terse {
namespace {

class Buffering : public Intake {
 public:
  Transition Enter(RunContext& run) override {
    // A round that an aborted one, or a pause, left a full buffer has no work to give.
    const bool full = IsFull(run);
    TERSE_RETURN_IF_ERROR(
        Begin(run, [&](Session& session) { return full ? absl::OkStatus() : Employ(run, session).status(); }));
    // Updates that an aborted round left may be all that come.
    return full || IsComplete(run) ? CloseRound(run) : absl::nullopt;
  }

  Transition OnReady(RunContext& run, Session& session) override { return Stay(EmployAll(run)); }

  Transition OnUpdate(RunContext& run, Session& session, Update update) override {
    TERSE_RETURN_IF_ERROR(TakeIn(run, session, std::move(update)));
    return CloseOrEmploy(run);
  }

  Transition OnTick(RunContext& run) override { return CloseOrEmploy(run); }
  Transition OnLeft(RunContext& run) override { return CloseOrEmploy(run); }

  // After the deadline only an update can change anything, and a pause, which ticks.
  int64_t DeadlineMicros(const RunContext& run) const override {
    return std::min(CompleteMicros(run), looked_us_ < Deadline(run) ? Deadline(run) : kNever);
  }

 private:
  Transition CloseOrEmploy(RunContext& run) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(EmployAll(run));
  }

  // Gives a client work that is free and has not delivered. Whether there is something to send.
  static absl::StatusOr<bool> Employ(RunContext& run, Session& session) {
    if (session.client < 0 || !run.IsFree(session) || run.received.contains(session.client)) return false;
    TERSE_RETURN_IF_ERROR(BringUp(run, session));
    if (!run.CanWork(session)) return false;  // it loads a checkpoint first
    Assign(run, session);
    return true;
  }

  static absl::Status EmployAll(RunContext& run) {
    for (auto& [id, session] : run.sessions) {
      TERSE_ASSIGN_OR_RETURN(const bool assigned, Employ(run, session));
      if (assigned) session.link->Flush();
    }
    return absl::OkStatus();
  }

  // Updates that close the round before its deadline. A full gradient is the whole fleet's.
  static int64_t Wanted(const RunContext& run) {
    const bool gradient = TaskFrom(*run.config, run.head.version) == ClientTask::kFullGradient;
    return gradient ? run.config->rounds.clients : run.config->rounds.cohort;
  }

  static bool IsFull(const RunContext& run) { return static_cast<int64_t>(run.received.size()) >= Wanted(run); }

  // With a full buffer at once, and with a quorum when nobody else is on the way; with one from the deadline on.
  // Without one the round stays open, unless the run is paused.
  Transition CloseIfDue(RunContext& run) {
    const RoundPolicy& policy = run.config->rounds;
    if (IsFull(run)) return CloseRound(run);
    const int64_t received = static_cast<int64_t>(run.received.size());
    if (!DeadlinePassed(run)) return IsComplete(run) ? CloseRound(run) : absl::nullopt;
    if (received >= policy.quorum) return CloseRound(run);
    const std::string few =
        absl::StrCat(received, " of ", policy.quorum, " updates that the quorum needs came before ");
    if (run.paused) return OnAbort(run, absl::StrCat(few, "the pause"));
    if (!std::exchange(noted_, true))
      TERSE_RETURN_IF_ERROR(run.Note(event::kRoundWaits, -1, absl::StrCat(few, "the deadline")));
    return absl::nullopt;
  }

  bool noted_ = false;  // that it waits beyond its deadline
};

}  // namespace

std::unique_ptr<Phase> MakeBuffering() { return std::make_unique<Buffering>(); }

}  // namespace terse
