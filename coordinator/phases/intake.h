// What collecting and buffering do alike: hand out work, take an update in, close the round.
#ifndef TERSE_COORDINATOR_PHASES_INTAKE_H_
#define TERSE_COORDINATOR_PHASES_INTAKE_H_

#include "coordinator/phases/phase.h"

namespace terse {

// Gives the session the open round's work if it is invited, has not delivered and can work. Whether it did.
bool Assign(RunContext& run, Session& session);

// Answers an update of a client whose update is in the round already: a repetition once more, another with a refusal.
absl::Status AnswerRepeated(RunContext& run, Session& session, const Update& update, ReceivedUpdate& known);

// Adds a validated update that follows the client's last one to the round's, and sends its receipt.
absl::Status Accept(RunContext& run, Session& session, Update update, int64_t staleness);

// In a buffered run, whether a round is open or not: accepts an update that may still be chosen, or answers it.
absl::Status TakeIn(RunContext& run, Session& session, Update update);

// Closes the round with what was received.
Transition CloseRound(RunContext& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_PHASES_INTAKE_H_
