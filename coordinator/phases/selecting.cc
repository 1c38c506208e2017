// Selecting: waits until enough clients are here, then opens the round.
#include <algorithm>
#include <utility>

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

  Transition Enter(EngineState& run) override {
    since_us_ = run.MonotonicNow();
    if (run.course.ending.has_value()) return PhaseName::kFinishing;
    return TryOpen(run);
  }

  Transition OnReady(EngineState& run, Session& session) override { return TryOpen(run); }
  Transition OnUpdate(EngineState& run, Session& session, Update update) override {
    TERSE_RETURN_IF_ERROR(TakeIn(run, session, std::move(update)));
    return TryOpen(run);  // the client is free for new work
  }
  Transition OnTick(EngineState& run) override { return TryOpen(run); }
  Transition OnLeft(EngineState& run) override { return TryOpen(run); }
  Transition OnStop(EngineState& run) override { return PhaseName::kFinishing; }

  int64_t DeadlineMicros(const EngineState& run) const override {
    // After that, only a client that becomes ready can change anything.
    const bool waits = run.course.paused || AwaitsOrder(run) || settles_for_quorum_;
    return waits ? kNever : std::min(PatienceMicros(run), CompleteMicros(run));
  }

 private:
  // A relay opens no round of its own accord.
  static bool AwaitsOrder(const EngineState& run) { return run.relay.has_value() && !run.relay->order.has_value(); }

  // Clients that take part in a round that opens now: in a buffered run also those that delivered for it already, here
  // or not, and those that work on.
  static int64_t CountReady(const EngineState& run) {
    return run.round.size() + run.fleet.groups().Count([](Standing s) { return s.ready && !s.delivered; });
  }

  // When a later round opens without a cohort: a quorum is ready, and nobody else is on the way.
  static int64_t CompleteMicros(const EngineState& run) {
    if ((run.round.number() == 0 && !run.relay.has_value()) || CountReady(run) < run.config->rounds.quorum)
      return kNever;
    return run.fleet.NobodyComesMicros([](Standing s) { return !s.delivered && !s.ready; },
                                       [](Standing s) { return !s.delivered; });
  }

  int64_t PatienceMicros(const EngineState& run) const {
    const int64_t since_us = run.relay.has_value() ? std::max(since_us_, run.relay->ordered_us) : since_us_;
    return since_us + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
  }

  // The whole fleet for the first round and a cohort for a later one, or a quorum once nobody else comes or it has
  // waited for as long as a round may take.
  int64_t Wanted(const EngineState& run) const {
    const RoundPolicy& policy = run.config->rounds;
    if (settles_for_quorum_) return policy.quorum;
    if (run.relay.has_value()) return policy.cohort;
    return run.round.number() == 0 ? policy.clients : policy.cohort;
  }

  Transition TryOpen(EngineState& run) {
    if (AwaitsOrder(run)) return absl::nullopt;
    const int64_t ready = CountReady(run);
    settles_for_quorum_ = run.MonotonicNow() >= std::min(PatienceMicros(run), CompleteMicros(run));
    if (run.course.paused || ready < Wanted(run)) return absl::nullopt;
    TERSE_FAILPOINT("coordinator.round.before_open");
    const int64_t now = run.Now();
    absl::optional<RoundPlan> plan = NextPlan(run);
    TERSE_RETURN_IF_ERROR(run.store()->OpenRound(run.round.number() + 1, run.model.head().version, now, plan));
    run.round.Open(now, std::move(plan));
    return PhaseName::kCollecting;
  }

  int64_t since_us_ = 0;
  bool settles_for_quorum_ = false;  // as of the last look: time goes on until the timer is asked for
};

}  // namespace

std::unique_ptr<Phase> MakeSelecting() { return std::make_unique<Selecting>(); }

}  // namespace terse
