// Selecting: waits until the cohort is here, then opens the round.
#include "coordinator/phases/phases.h"
#include "core/status.h"

namespace terse {
namespace {

class Selecting : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kSelecting; }

  Transition Enter(RunContext& run) override {
    since_us_ = run.Now();
    if (run.stopping) return PhaseName::kFinishing;
    return TryOpen(run);
  }

  Transition OnReady(RunContext& run, Session& session) override { return TryOpen(run); }
  Transition OnTick(RunContext& run) override { return TryOpen(run); }
  Transition OnStop(RunContext& run) override { return PhaseName::kFinishing; }

  int64_t DeadlineMicros(const RunContext& run) const override {
    const int64_t patience = since_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
    // Past it, only a client that becomes ready can change anything.
    return run.Now() >= patience ? kNever : patience;
  }

 private:
  // The whole cohort, or a quorum once it has waited for as long as a round may take.
  Transition TryOpen(RunContext& run) {
    int64_t ready = 0;
    for (const auto& [id, session] : run.sessions) ready += session.version == run.head.version;
    const RoundPolicy& policy = run.config->rounds;
    const bool patient = run.Now() < since_us_ + static_cast<int64_t>(policy.deadline_seconds * 1e6);
    if (ready < (patient ? policy.clients : policy.quorum)) return absl::nullopt;
    const int64_t now = run.Now();
    TERSE_RETURN_IF_ERROR(run.store->OpenRound(run.round + 1, run.head.version, now));
    run.round += 1;
    run.round_open = true;
    run.round_opened_us = now;
    return PhaseName::kCollecting;
  }

  int64_t since_us_ = 0;
};

}  // namespace

std::unique_ptr<Phase> MakeSelecting() { return std::make_unique<Selecting>(); }

}  // namespace terse
