// Waiting between attempts to reach somebody.
#ifndef TERSE_CLIENT_RPC_BACKOFF_H_
#define TERSE_CLIENT_RPC_BACKOFF_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/random.h"

namespace terse {

// Waits for `wait` or until the process should stop.
inline void SleepUnlessStopped(absl::Duration wait, const std::atomic<bool>& stop) {
  const absl::Time until = absl::Now() + wait;
  while (!stop.load() && absl::Now() < until) {
    absl::SleepFor(std::min(absl::Milliseconds(100), until - absl::Now()));
  }
}

// Exponential up to a minute, with full jitter, so that a fleet does not come back all at once after a restart of the
// coordinator. Not thread-safe.
class Backoff {
 public:
  // kSoon: somebody else is about to answer, as when another coordinator takes the runs over. The first two minutes are
  // waited in steps of four seconds at most; whatever takes longer than that is no takeover.
  enum class Expects { kLater, kSoon };

  Backoff(absl::Duration first, uint64_t seed, Expects expects = Expects::kLater)
      : first_(first), expects_(expects), random_(seed) {}
  // After an attempt that was of use.
  void Reset() {
    base_ = first_;
    waited_ = absl::ZeroDuration();
  }
  absl::Duration Next() {
    const absl::Duration wait = base_ * random_.Uniform(0.5, 1.0);
    waited_ += wait;
    const bool is_soon = expects_ == Expects::kSoon && waited_ < kTakeover;
    base_ = std::min(base_ * 2, is_soon ? std::max(first_, kMostSoon) : kMost);
    return wait;
  }

 private:
  static constexpr absl::Duration kMost = absl::Seconds(60);
  static constexpr absl::Duration kMostSoon = absl::Seconds(4);
  static constexpr absl::Duration kTakeover = absl::Minutes(2);

  const absl::Duration first_;
  const Expects expects_;
  Random random_;
  absl::Duration base_ = first_;
  absl::Duration waited_;  // since the last attempt that was of use
};

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_BACKOFF_H_
