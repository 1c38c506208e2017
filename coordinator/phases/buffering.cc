// Collecting for buffered rounds: every free client has work, and the round closes with the first updates that fill the
// buffer, whichever round they were begun in. Who trains on goes on.
#include <utility>

#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "coordinator/sessions.h"
#include "coordinator/staleness.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Buffering : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCollecting; }

  Transition Enter(RunContext& run) override {
    TERSE_FAILPOINT("coordinator.round.opened");
    entered_us_ = looked_us_ = run.Now();
    bool first = true;
    for (auto& [id, session] : run.sessions) {
      InviteOne(run, session);
      session.link->Flush();  // also what the round before had to say
      if (std::exchange(first, false)) TERSE_FAILPOINT("coordinator.announce.first");
    }
    return CloseIfDue(run);  // an aborted round leaves its updates to the next one
  }

  Transition OnReady(RunContext& run, Session& session) override { return Stay(Invite(run)); }

  Transition OnUpdate(RunContext& run, Session& session, Update update) override {
    TERSE_RETURN_IF_ERROR(TakeIn(run, session, std::move(update)));
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(Invite(run));
  }

  Transition OnTick(RunContext& run) override {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<PhaseName> next, CloseIfDue(run));
    return next.has_value() ? Transition(next) : Stay(Invite(run));
  }

  Transition OnStop(RunContext& run) override {
    TERSE_RETURN_IF_ERROR(Abort(run, run.ending->reason));
    return PhaseName::kFinishing;
  }

  Transition OnAbort(RunContext& run, const std::string& reason) override {
    TERSE_RETURN_IF_ERROR(Abort(run, reason));
    return PhaseName::kSelecting;
  }

  // After the deadline only an update can change anything.
  int64_t DeadlineMicros(const RunContext& run) const override {
    return looked_us_ < Deadline(run) ? Deadline(run) : kNever;
  }

 private:
  static Transition Stay(const absl::Status& status) {
    return status.ok() ? Transition(absl::nullopt) : Transition(status);
  }

  int64_t Deadline(const RunContext& run) const {
    return entered_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
  }

  static bool InviteOne(RunContext& run, Session& session) {
    if (!run.CanWork(session) || run.received.contains(session.client)) return false;
    run.invited.insert(session.client);
    return Assign(run, session);
  }

  static absl::Status Invite(RunContext& run) {
    for (auto& [id, session] : run.sessions) {
      if (InviteOne(run, session)) session.link->Flush();
    }
    return absl::OkStatus();
  }

  // With a full buffer at once; with a quorum from the deadline on.
  Transition CloseIfDue(RunContext& run) {
    const int64_t received = static_cast<int64_t>(run.received.size());
    if (received >= run.config->rounds.cohort) return CloseRound(run);
    looked_us_ = run.Now();
    if (looked_us_ < Deadline(run) || received < run.config->rounds.quorum) return absl::nullopt;
    return CloseRound(run);
  }

  int64_t entered_us_ = 0;
  int64_t looked_us_ = 0;  // when it was last asked whether to close
};

}  // namespace

absl::Status TakeIn(RunContext& run, Session& session, Update update) {
  const auto existing = run.received.find(session.client);
  if (existing != run.received.end()) return AnswerRepeated(run, session, update, existing->second);
  if (!Follows(run, session, update)) return AnswerLate(run, session, update);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> staleness, StalenessOf(run, update.round));
  const bool fresh = staleness.has_value() && *staleness <= run.config->rounds.staleness;
  // An update that a round chose has its verdict from that round.
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunStore::Fate> fate, run.store->FateOf(update.update_id));
  if (!fresh || fate.has_value()) return AnswerLate(run, session, update);
  return Accept(run, session, std::move(update), *staleness);
}

std::unique_ptr<Phase> MakeBuffering() { return std::make_unique<Buffering>(); }

}  // namespace terse
