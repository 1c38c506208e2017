// How often somebody may do something: a token bucket for each key.
#ifndef TERSE_NET_RATE_LIMIT_H_
#define TERSE_NET_RATE_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/clock.h"

namespace terse {

// Remembers keys that have not all of their tokens, up to kMostKeys: whoever comes beyond that shares one bucket with
// the others who do, so that new keys cannot be had without end. Thread-safe.
class RateLimit {
 public:
  struct Rate {
    double per_minute = 1;
    double at_once = 1;  // after a pause
  };
  static constexpr size_t kMostKeys = 4096;

  // `clock` must outlive this.
  RateLimit(const Rate& rate, Clock* clock) : rate_(rate), clock_(clock) {}

  // Takes one of the key's tokens and returns zero; without one, the time until there is one, and nothing is taken.
  absl::Duration Take(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bucket {
    double tokens = 0;
    int64_t updated_us = 0;
  };

  double TokensAt(int64_t now_us, const Bucket& bucket) const;
  Bucket& Find(absl::string_view key, int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Rate rate_;
  Clock* const clock_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  int64_t swept_us_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace terse

#endif  // TERSE_NET_RATE_LIMIT_H_
