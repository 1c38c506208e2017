// Selecting: waits until enough clients are here, then opens the round.
#include <algorithm>
#include <utility>

#include "coordinator/absence.h"
#include "coordinator/phases/intake.h"
#include "coordinator/phases/phases.h"
#include "coordinator/round_plans.h"
#include "coordinator/sessions.h"
#include "core/fault.h"
#include "core/status.h"

namespace terse {
namespace {

class Selecting : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kSelecting; }

  Transition Enter(RunContext& run) override {
    since_us_ = run.MonotonicNow();
    FlushAll(run);
    if (run.ending.has_value()) return PhaseName::kFinishing;
    return TryOpen(run);
  }

  Transition OnReady(RunContext& run, Session& session) override { return TryOpen(run); }
  Transition OnUpdate(RunContext& run, Session& session, Update update) override {
    TERSE_RETURN_IF_ERROR(run.config->rounds.buffered ? TakeIn(run, session, std::move(update))
                                                      : AnswerLate(run, session, update));
    session.link->Flush();  // the receipt has nothing to wait for
    return TryOpen(run);    // the client is free for new work
  }
  Transition OnTick(RunContext& run) override { return TryOpen(run); }
  Transition OnLeft(RunContext& run) override { return TryOpen(run); }
  Transition OnStop(RunContext& run) override { return PhaseName::kFinishing; }

  int64_t DeadlineMicros(const RunContext& run) const override {
    // After that, only a client that becomes ready can change anything.
    return run.paused || settles_for_quorum_ ? kNever : std::min(PatienceMicros(run), CompleteMicros(run));
  }

 private:
  // Clients that take part in a round that opens now: in a buffered run also those that delivered for it already, here
  // or not, and those that work on.
  static int64_t CountReady(const RunContext& run) {
    int64_t ready = static_cast<int64_t>(run.received.size());
    for (const auto& [id, session] : run.sessions) {
      ready += session.client >= 0 && !run.received.contains(session.client) && IsReady(run, session);
    }
    return ready;
  }
  static bool IsReady(const RunContext& run, const Session& session) {
    const bool lags = session.version.has_value() && run.IsFree(session);
    return run.CanWork(session) || (run.config->rounds.buffered && (lags || session.assigned_round != 0));
  }

  // When a later round opens without a cohort: a quorum is ready, and nobody else is on the way.
  static int64_t CompleteMicros(const RunContext& run) {
    if (run.round == 0 || CountReady(run) < run.config->rounds.quorum) return kNever;
    const auto missing = [&](int64_t client) { return !run.received.contains(client); };
    return NobodyComesMicros(
        run, [&](const Session& session) { return missing(session.client) && !IsReady(run, session); }, missing);
  }

  int64_t PatienceMicros(const RunContext& run) const {
    return since_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
  }

  // The whole fleet for the first round and a cohort for a later one, or a quorum once nobody else comes or it has
  // waited for as long as a round may take.
  int64_t Wanted(const RunContext& run) const {
    const RoundPolicy& policy = run.config->rounds;
    if (settles_for_quorum_) return policy.quorum;
    return run.round == 0 ? policy.clients : policy.cohort;
  }

  Transition TryOpen(RunContext& run) {
    const int64_t ready = CountReady(run);
    settles_for_quorum_ = run.MonotonicNow() >= std::min(PatienceMicros(run), CompleteMicros(run));
    if (run.paused || ready < Wanted(run)) return absl::nullopt;
    TERSE_FAILPOINT("coordinator.round.before_open");
    const int64_t now = run.Now();
    absl::optional<RoundPlan> plan = NextPlan(run);
    TERSE_RETURN_IF_ERROR(run.store->OpenRound(run.round + 1, run.head.version, now, plan));
    run.round += 1;
    TakePlan(run, std::move(plan));
    run.round_open = true;
    run.round_opened_us = now;
    return PhaseName::kCollecting;
  }

  int64_t since_us_ = 0;
  bool settles_for_quorum_ = false;  // as of the last look: time goes on until the timer is asked for
};

}  // namespace

std::unique_ptr<Phase> MakeSelecting() { return std::make_unique<Selecting>(); }

}  // namespace terse
