#include "net/rate_limit.h"

#include <algorithm>

namespace terse {
namespace {

constexpr double kMicrosPerMinute = 60e6;
// Between two looks at all keys, when there is no room for another.
constexpr int64_t kSweepIntervalUs = 1'000'000;
// No peer has this name.
constexpr char kAllOthers[] = "(others)";

}  // namespace

// A clock that was set back gives nothing and takes nothing.
double RateLimit::TokensAt(int64_t now_us, const Bucket& bucket) const {
  const double minutes = static_cast<double>(std::max<int64_t>(0, now_us - bucket.updated_us)) / kMicrosPerMinute;
  return std::min(rate_.at_once, bucket.tokens + minutes * rate_.per_minute);
}

RateLimit::Bucket& RateLimit::Find(absl::string_view key, int64_t now_us) {
  if (const auto found = buckets_.find(key); found != buckets_.end()) return found->second;
  if (buckets_.size() >= kMostKeys && now_us - swept_us_ >= kSweepIntervalUs) {
    swept_us_ = now_us;
    for (auto it = buckets_.begin(); it != buckets_.end();) {
      const auto bucket = it++;
      if (TokensAt(now_us, bucket->second) >= rate_.at_once) buckets_.erase(bucket);
    }
  }
  const bool has_room = buckets_.size() < kMostKeys;
  return buckets_.try_emplace(has_room ? key : kAllOthers, Bucket{rate_.at_once, now_us}).first->second;
}

absl::Duration RateLimit::Take(absl::string_view key) {
  const int64_t now_us = clock_->NowMicros();
  absl::MutexLock lock(&mutex_);
  Bucket& bucket = Find(key, now_us);
  bucket = {TokensAt(now_us, bucket), now_us};
  if (bucket.tokens < 1) return absl::Minutes((1 - bucket.tokens) / rate_.per_minute);
  bucket.tokens -= 1;
  return absl::ZeroDuration();
}

}  // namespace terse
