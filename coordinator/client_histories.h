// The engine's use of the histories of its clients' applied updates (update_histories.h): which are held, which
// begin anew, and when the stored ones are made shorter.
#ifndef TERSE_COORDINATOR_CLIENT_HISTORIES_H_
#define TERSE_COORDINATOR_CLIENT_HISTORIES_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "coordinator/session.h"
#include "coordinator/update_histories.h"
#include "core/session_messages.h"
#include "storage/run_store.h"

namespace terse {

struct EngineState;

// The size of a client's history in the store.
struct HistoryLog {
  int64_t messages = 0;  // applied updates since the last reset
  int64_t bytes = 0;     // of those that are no part of its state yet
};

struct ClientHistories {
  UpdateHistories* cache = nullptr;  // not owned; null: updates are not packed
  // The stored histories of the clients whose own history this engine found equal, and goes on with.
  absl::btree_map<int64_t, HistoryLog> logs;
  bool full = false;  // for some client there was no room, and the events say so

  bool Holds(int64_t client) const { return cache != nullptr && cache->Holds(client); }
};

// All are without effect in a run that packs nothing. A status other than OK is a failure of the store.

// Handles the client's first Ready on this connection, with the hash of its history. Where that is the coordinator's,
// its history is held and goes on; otherwise it is told to begin anew, and the coordinator's begins anew too. Where
// none can be held, the stored history is given up, because it would not go on.
absl::Status HoldHistory(EngineState& run, Session& session, Id128 theirs);
// Counts a residual of the client's as lost, with its history.
absl::Status ResetClient(EngineState& run, int64_t client);
// Resets the history in memory alone, for a client whose reset the store has counted; its next updates may come packed
// at once.
void BeginHistoryAnew(EngineState& run, int64_t client);
// Returns the messages that the commit of the round's updates adds to the stored histories, for Commit::history.
std::vector<HistoryMessage> MessagesForHistories(const EngineState& run);
// Adds the same messages to the histories in memory, once that commit is decided.
absl::Status AddToHistories(EngineState& run);
// Replaces the client's log by a state where the log has grown to a quarter of a state: O(parameters). Called when the
// client's update came, while others train, and not at the commit, for which all wait.
absl::Status CompactHistoryIfDue(EngineState& run, int64_t client);
// Refuses an update that came packed and was not what the client sealed: both ends' histories differ, or it was
// damaged. The client comes back and sends it as it is, and from then on all of them.
absl::Status RefuseMisread(EngineState& run, Session& session);

}  // namespace terse

#endif  // TERSE_COORDINATOR_CLIENT_HISTORIES_H_
