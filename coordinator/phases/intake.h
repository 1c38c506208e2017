// The base of collecting and buffering: hand out work, take an update in, close the round.
#ifndef TERSE_COORDINATOR_PHASES_INTAKE_H_
#define TERSE_COORDINATOR_PHASES_INTAKE_H_

#include <string>

#include "coordinator/phases/phase.h"

namespace terse {

// A phase that lasts until a round's updates are in, or the round is given up.
class Intake : public Phase {
 public:
  PhaseName name() const override { return PhaseName::kCollecting; }
  Transition OnUpdate(EngineState& run, Session& session, Update update) override;
  Transition OnTick(EngineState& run) override { return Proceed(run); }
  // Nobody else may be left to wait for.
  Transition OnLeft(EngineState& run) override { return Proceed(run); }
  Transition OnStop(EngineState& run) override;
  Transition OnAbort(EngineState& run, const std::string& reason) override;

 protected:
  absl::Status Begin(EngineState& run);
  // Closes the round if that is due, and otherwise gives work to clients that can work for it.
  virtual Transition Proceed(EngineState& run) = 0;
  int64_t Deadline(const EngineState& run) const {
    return entered_us_ + static_cast<int64_t>(run.config->rounds.deadline_seconds * 1e6);
  }
  // Asks the clock. Every handler that may close a round at its deadline calls this first.
  bool DeadlinePassed(const EngineState& run) {
    looked_us_ = run.MonotonicNow();
    return looked_us_ >= Deadline(run);
  }
  static Transition Stay(const absl::Status& status) {
    return status.ok() ? Transition(absl::nullopt) : Transition(status);
  }

  // Returns when the round closes without its cohort, before the deadline: a quorum is in, every other connected client
  // that could deliver has, and those that lost their connection had time to come back. kNever while one of these is
  // not so.
  int64_t CompleteMicros(const EngineState& run) const;
  // Whether the round closes so now. Asked after DeadlinePassed, whose look at the clock it takes.
  bool IsComplete(const EngineState& run) const { return looked_us_ >= CompleteMicros(run); }
  // Whether clients that were given no work in the round could be given some.
  virtual bool HasPlaces(const EngineState& run) const { return true; }

  int64_t entered_us_ = 0;
  int64_t looked_us_ = 0;  // when it was last asked whether to close: time goes on until the timer is asked for
};

// Gives the session, which can work, the open round's work.
void Assign(EngineState& run, Session& session);

// Decides about an update as Phase::OnUpdate has it: adds it to the round's if it counts, and answers it. The receipt
// of one that counts leaves with the verdict, or at once where the client had to send again or no round is open. A
// synchronous run takes none in while no round is open.
absl::Status TakeIn(EngineState& run, Session& session, Update update);

// Closes the round with the received updates, but for those that [policy] refuses (update_policy.h).
Transition CloseRound(EngineState& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_PHASES_INTAKE_H_
