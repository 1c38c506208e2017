// Brings clients to the head: by the log of downstream messages, or by a checkpoint. docs/PROTOCOL.md, step 7.
#ifndef TERSE_COORDINATOR_CATCH_UP_H_
#define TERSE_COORDINATOR_CATCH_UP_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "coordinator/engine_state.h"

namespace terse {

// The bytes of the log that are sent to one client at a time: a part of the bytes that may be queued for it
// (RunHost::max_queued_bytes).
inline constexpr int64_t kCatchUpBytes = int64_t{16} << 20;

// No limit for the log to one client. Under a smaller one, a client that lacks more, be it a single message, gets a
// checkpoint.
inline constexpr int64_t kAnyLogBytes = std::numeric_limits<int64_t>::max();

// Brings the client from `version` to the head: by the log, part by part, or by a checkpoint when that is shorter or
// the log is more than may be sent. Where that needs a newer checkpoint, the session waits for it
// (Session::awaits_checkpoint). In a run with epochs the newest snapshot and the head's model suffice. Afterwards the
// session has a version, or none while it downloads. Errors of the store, here and below.
absl::Status CatchUp(EngineState& run, Session& session, int64_t version);

// Does so for a session that lags behind what it holds, unless more of the log follows by itself. In a buffered run a
// client that trains hears nothing until its update is in, and is brought up then.
absl::Status BringUp(EngineState& run, Session& session);

// In a run with epochs: sends the epoch's snapshot and the head, each where the client needs it; a `version` of -1 is
// none.
absl::Status SendModels(EngineState& run, Session& session, int64_t version);

// Tells the client to load the newest checkpoint. `reason` is one line for people.
absl::Status SendResync(EngineState& run, Session& session, const std::string& reason);

}  // namespace terse

#endif  // TERSE_COORDINATOR_CATCH_UP_H_
