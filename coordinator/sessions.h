// The way of a client into a run: check in, settle what is pending, catch up with the head. docs/PROTOCOL.md, steps 1
// and 7.
#ifndef TERSE_COORDINATOR_SESSIONS_H_
#define TERSE_COORDINATOR_SESSIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/run_context.h"

namespace terse {

// Returns the verdict on update `update_id` of `round`, whose predecessor the client says is `prev_applied`: APPLIED
// when it is the client's last applied one, RESET when the predecessors differ, it was refused or it is another
// client's, NOT_APPLIED when the round that chose it was aborted or no round can choose it any more (staleness.h), else
// PENDING.
absl::StatusOr<Verdict> Settle(RunContext& run, int64_t client, Id128 last_applied, Id128 update_id, int64_t round,
                               Id128 prev_applied);

// Brings a session that lags behind to the head: by the log, part by part, or by a checkpoint when that is shorter or
// the log is more than may be sent. Where that needs a newer checkpoint, the session waits for it (awaits_checkpoint).
// In a run with epochs the newest snapshot and the head's model suffice. In a buffered run a client that trains hears
// nothing until its update is in, and is brought up then.
absl::Status BringUp(RunContext& run, Session& session);

// Answers with Welcome, or refuses: an unknown protocol version, an unusable name, another run's, one that is not on
// the list of clients, a full fleet. A second connection under one name replaces the first. A status other than OK is a
// failure of the store.
absl::Status HandleCheckIn(RunContext& run, SessionId id, const CheckIn& message);

// Brings the client to the head by the log of downstream messages, or tells it to download the checkpoint when the log
// does not reach back or costs more bytes. Afterwards session.version is set, or nullopt while it downloads.
absl::Status HandleReady(RunContext& run, SessionId id, const Ready& message);

// Whether the update is whole and follows the client's last applied one: its id is recomputed from the coordinator's
// record.
bool Follows(const RunContext& run, const Session& session, const Update& update);

// Refuses the session; it ends when the connection does.
void Refuse(Session& session, const std::string& reason, bool retry);

// Sends what waits on any connection.
void FlushAll(RunContext& run);

// Books the session's bytes and forgets it.
absl::Status CloseSession(RunContext& run, SessionId id);

// Samples the connection of every session that checked in.
void BookWire(RunContext& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SESSIONS_H_
