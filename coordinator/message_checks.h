// Checks of clients' messages that need nothing of a run's state, so that bad ones never reach the engine.
#ifndef TERSE_COORDINATOR_MESSAGE_CHECKS_H_
#define TERSE_COORDINATOR_MESSAGE_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "coordinator/update_histories.h"
#include "core/session_messages.h"
#include "storage/update_spool.h"

namespace terse {

// Everything about a message that can be checked without the run's state; for the threads that receive, outside the
// engine's. INVALID_ARGUMENT with what is wrong. Thread-safe.
absl::Status ValidateMessage(const Codec& codec, const FromClient& message);

// Does the same for a message that came off the wire, and unpacks an update that client `client` packed. An update that
// cannot be unpacked stays packed, and the engine asks for it as it is. An update is measured in the same reading
// (Update::norm), so that nobody has to decode it for its size. `histories` is null in a run whose updates are not
// packed: there a packed one is INVALID_ARGUMENT. Thread-safe.
//
// An update that the session was not asked for (`is_due` is false) is not decoded, because decoding is what costs: the
// engine answers it as it answers every update that does not count, from its id alone.
absl::Status TakeMessage(const Codec& codec, const UpdateHistories* histories, int64_t client, FromClient* message,
                         bool is_due = true);

// Puts an update that TakeMessage decoded into the spool, from where Update::bytes has it. Statuses of
// UpdateSpool::Keep. Thread-safe.
absl::Status PutAway(UpdateSpool& spool, FromClient* message);

}  // namespace terse

#endif  // TERSE_COORDINATOR_MESSAGE_CHECKS_H_
