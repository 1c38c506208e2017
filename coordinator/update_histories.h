// What the coordinator knows of its clients' applied updates, for packed ones (compression/update_history.h): in memory
// for the clients that are connected, in the store for all. It moves exactly where last_applied moves.
#ifndef TERSE_COORDINATOR_UPDATE_HISTORIES_H_
#define TERSE_COORDINATOR_UPDATE_HISTORIES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "compression/codec.h"
#include "compression/update_history.h"
#include "core/session_messages.h"
#include "storage/run_store.h"

namespace terse {

struct RunContext;
struct Session;

// The histories in memory. The threads that receive read them, the engine's changes them. A client whose history is not
// held sends its updates as they are (Assignment::packed), so nothing depends on which are.
class UpdateHistories {
 public:
  // Of all of them together: each has a byte for every parameter.
  static constexpr int64_t kMostBytes = int64_t{1} << 30;
  // Memory for decoding, up to 8 bytes a parameter, is taken by so many updates at a time.
  static constexpr int kUnpackingsAtOnce = 2;

  // `codec` has a PackedLayout and must outlive the object.
  explicit UpdateHistories(const Codec* codec, int64_t most_bytes = kMostBytes);

  // Unpacks a packed update of `client` with what is held of it. Where nothing is held, or the bytes do not fit it, the
  // update stays packed and loses its bytes. May wait for others' unpackings. Thread-safe.
  void Unpack(int64_t client, Update* update) const ABSL_LOCKS_EXCLUDED(mutex_, turns_mutex_);
  // Thread-safe.
  bool Holds(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);

  // From here on for the engine's thread only.

  // What the record is of. DATA_LOSS when it is none of this model.
  absl::StatusOr<UpdateHistory> Build(const HistoryRecord& record) const;
  // Of a history, whatever it is of: Serialize's.
  int64_t state_bytes() const { return state_bytes_; }
  // Holds it, unless there is no room or the client is distrusted.
  void Hold(int64_t client, UpdateHistory history) ABSL_LOCKS_EXCLUDED(mutex_);
  // One more update of the client, where a history is held.
  absl::Status Add(int64_t client, absl::string_view message) ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  // Client and coordinator do not hold the same history: it is not used until Trust.
  void Distrust(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Trust(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Turn;
  using Shared = std::shared_ptr<UpdateHistory>;

  bool HasTurn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns_mutex_) { return unpacking_ < kUnpackingsAtOnce; }

  const Codec* const codec_;
  const int64_t state_bytes_;
  const int64_t most_held_;

  mutable absl::Mutex turns_mutex_;
  mutable int unpacking_ ABSL_GUARDED_BY(turns_mutex_) = 0;

  // Whoever reads a history has a share of it, taken and given back under the mutex; one that has other shares is
  // copied before it changes.
  mutable absl::Mutex mutex_;
  std::map<int64_t, Shared> held_ ABSL_GUARDED_BY(mutex_);
  std::set<int64_t> distrusted_ ABSL_GUARDED_BY(mutex_);
};

// The engine's part. All are without effect in a run that packs nothing (RunContext::histories is null). A status other
// than OK is a failure of the store.

// The client is there and may be given work: brings its history from the store into memory.
absl::Status HoldHistory(RunContext& run, const Session& session);
// Counts a residual of the client's as lost, with its history.
absl::Status ResetClient(RunContext& run, int64_t client);
// What the commit of run.received adds, for Commit::history.
std::vector<HistoryMessage> HistoryOf(const RunContext& run);
// After that commit: the same in memory, and where the log of a client has grown, its history as a state in its place.
absl::Status AddToHistories(RunContext& run);
// Whether the update came packed and was not what the client sealed: both ends' histories differ, or it was damaged.
bool IsMisread(const RunContext& run, const Session& session, const Update& update);
// Refuses such an update: the client comes back and sends it as it is, and from then on all of them.
absl::Status RefuseMisread(RunContext& run, Session& session);

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPDATE_HISTORIES_H_
