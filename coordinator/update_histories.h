// The coordinator's histories of its clients' applied updates, for packed ones (compression/update_history.h): in
// memory for the clients that are connected, in the store for all. A history changes exactly where last_applied does.
#ifndef TERSE_COORDINATOR_UPDATE_HISTORIES_H_
#define TERSE_COORDINATOR_UPDATE_HISTORIES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "compression/codec.h"
#include "compression/update_history.h"
#include "core/id128.h"
#include "core/session_messages.h"
#include "storage/run_store.h"

namespace terse {

// The histories in memory. The threads that receive read them, the engine's changes them. A client whose history is not
// held sends its updates as they are (Assignment::packed), so nothing depends on which are.
class UpdateHistories {
 public:
  // The most bytes of all histories of a run together. Each history has a byte for every parameter.
  static constexpr int64_t kMostBytes = int64_t{1} << 30;
  // The number of updates that may be decoded at a time: each takes 8 bytes of memory for each position that its
  // message claims.
  static constexpr int kUnpackingsAtOnce = 2;

  // INVALID_ARGUMENT when the codec's messages cannot be packed, or there would not be room for two clients.
  static absl::Status Check(const Codec& codec, int64_t most_bytes = kMostBytes);

  // `codec` passed Check and must outlive the object.
  explicit UpdateHistories(const Codec* codec, int64_t most_bytes = kMostBytes);

  // Unpacks a packed update of `client` with what is held of it. Where nothing is held, or the bytes do not fit it, the
  // update stays packed and loses its bytes. May wait for others' unpackings. Thread-safe.
  void Unpack(int64_t client, Update* update) const ABSL_LOCKS_EXCLUDED(mutex_, turns_mutex_);
  // Thread-safe.
  bool Holds(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The functions below are for the engine's thread only.

  // Returns the history that the record describes. INVALID_ARGUMENT when it is none of this model, or one of another
  // release.
  absl::StatusOr<UpdateHistory> Build(const HistoryRecord& record) const;
  // The bytes of any history's serialized state (UpdateHistory::Serialize).
  int64_t state_bytes() const { return state_bytes_; }
  // Whether there is room for the client's history, and the client is not distrusted.
  bool MayHold(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Distrusts(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds the client's history, in the place of an older one. Needs MayHold.
  void Hold(int64_t client, UpdateHistory history) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the serialized history of the client; empty where none is held.
  std::string StateOf(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds one more update of the client, where a history is held.
  absl::Status Add(int64_t client, absl::string_view message) ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks a client whose packed updates are not what it sealed: no history is held for it until Trust.
  void Distrust(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Trust(int64_t client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Clear() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Turn;
  using Share = std::shared_ptr<UpdateHistory>;

  bool HasTurn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns_mutex_) { return unpacking_ < kUnpackingsAtOnce; }
  Share ShareOf(int64_t client) const ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(Share share) const ABSL_LOCKS_EXCLUDED(mutex_);

  const Codec* const codec_;
  const int64_t state_bytes_;
  const int64_t most_held_;

  mutable absl::Mutex turns_mutex_;
  mutable int unpacking_ ABSL_GUARDED_BY(turns_mutex_) = 0;

  // A reader takes a share of a history, and gives it back, under the mutex. A history with other shares is copied
  // before it changes.
  mutable absl::Mutex mutex_;
  std::map<int64_t, Share> held_ ABSL_GUARDED_BY(mutex_);
  std::set<int64_t> distrusted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPDATE_HISTORIES_H_
