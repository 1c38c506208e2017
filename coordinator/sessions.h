// The way of a client into a run and out of it: check in, settle what is pending, get ready. docs/PROTOCOL.md, steps 1
// and 7.
#ifndef TERSE_COORDINATOR_SESSIONS_H_
#define TERSE_COORDINATOR_SESSIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/engine_state.h"

namespace terse {

// Returns the verdict on update `update_id` of `round`, whose predecessor the client says is `prev_applied`: APPLIED
// when it is the client's last applied one, RESET when the predecessors differ, it was refused or it is another
// client's, NOT_APPLIED when the round that chose it was aborted or no round can choose it any more (staleness.h), else
// PENDING.
absl::StatusOr<Verdict> VerdictOn(EngineState& run, int64_t client, Id128 last_applied, Id128 update_id, int64_t round,
                                  Id128 prev_applied);

// Answers with Welcome, or refuses: an unknown protocol version, an unusable name, another run's, one that is not on
// the list of clients, a full fleet. A second connection under one name replaces the first. A status other than OK is a
// failure of the store.
absl::Status HandleCheckIn(EngineState& run, Session& session, const CheckIn& message);

// Takes note of what the client holds, and brings it to the head (catch_up.h). Refuses another model layout, and a
// client without data where samples count.
absl::Status HandleReady(EngineState& run, Session& session, const Ready& message);

// Refuses the session; it ends when the connection does.
void Refuse(EngineState& run, Session& session, const std::string& reason, bool retry);

// Books the session's bytes and forgets it.
absl::Status CloseSession(EngineState& run, SessionId id);

// Samples the connection of every session that checked in.
void BookWire(EngineState& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SESSIONS_H_
