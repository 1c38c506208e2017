// Answers that several viewers of the dashboard share.
#ifndef TERSE_WEB_REPLY_CACHE_H_
#define TERSE_WEB_REPLY_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/clock.h"
#include "web/packed_text.h"

namespace terse {

// The answer to one question is made, and packed, by one caller for all who ask meanwhile, and serves for ten times as
// long as that took, at least kLeastMicros and at most kMostMicros. Holds kMostReplies answers and kMostReplyBytes at
// most, forgets the oldest first, and does not keep a single one that is larger. Thread-safe.
class ReplyCache {
 public:
  using Body = std::shared_ptr<const PackedText>;  // never null

  static constexpr int64_t kLeastMicros = 500'000;
  static constexpr int64_t kMostMicros = 30'000'000;
  static constexpr size_t kMostReplies = 64;
  static constexpr size_t kMostReplyBytes = 64 << 20;

  // `clock` must outlive the cache.
  explicit ReplyCache(Clock* clock) : clock_(clock) {}

  // Returns what `make` gave for this key a while ago, or gives now. Errors are not kept.
  absl::StatusOr<Body> Get(const std::string& key, absl::FunctionRef<absl::StatusOr<std::string>()> make)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Reply {
    Body body;
    int64_t made_us = 0;
    int64_t fresh_us = 0;  // for so long
  };
  // A fresh answer, after whoever makes one has ended; nullptr when the caller is to make it.
  Body FindOrBegin(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const std::string& key, const Body& body, int64_t took_us) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock* const clock_;
  absl::Mutex mutex_;
  absl::flat_hash_set<std::string> making_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Reply> replies_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace terse

#endif  // TERSE_WEB_REPLY_CACHE_H_
