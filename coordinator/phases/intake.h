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
  Transition OnStop(EngineState& run) override;
  Transition OnAbort(EngineState& run, const std::string& reason) override;

 protected:
  // Begins: sends everyone what waits for them, with what they are given in this batch.
  absl::Status Begin(EngineState& run);
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

// Answers an update of a client whose update is in the round already: a repetition once more, another with a refusal.
absl::Status AnswerRepeated(EngineState& run, Session& session, const Update& update, ReceivedUpdate& known);

// Returns why a valid update that follows the client's last one does not count: its client is set aside, or was not
// given the work. Empty for one that does count.
absl::StatusOr<std::string> WhyNotTaken(EngineState& run, const Session& session, const Update& update);

// Answers such an update with NOT_APPLIED and the reason: nothing is lost, and the client is free.
absl::Status TurnAway(EngineState& run, Session& session, const Update& update, const std::string& reason);

// Adds a validated update that follows the client's last one to the round's. Its receipt leaves with the next message,
// or at once where the client had to send again. Refuses the session when the update was not decoded.
absl::Status Accept(EngineState& run, Session& session, Update update, int64_t staleness);

// Accepts an update that may still be chosen, or answers it. For buffered runs, whether a round is open or not.
absl::Status TakeIn(EngineState& run, Session& session, Update update);

// Closes the round with the received updates, but for those that [policy] refuses (update_policy.h).
Transition CloseRound(EngineState& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_PHASES_INTAKE_H_
