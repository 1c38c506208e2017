// Bounds the messages that a session may send (docs/SECURITY.md, "Budgets").
#ifndef TERSE_COORDINATOR_RPC_MESSAGE_BUDGET_H_
#define TERSE_COORDINATOR_RPC_MESSAGE_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace terse {

// A token bucket. An honest client says little that it is not asked for: Ready after a check-in and after a checkpoint,
// progress every 20 seconds. Its updates are paid for by the rounds that it is given, so a fleet may be as fast as it
// can. A session with nothing left is read more slowly, and nothing is refused. Whole messages count: an update in many
// chunks is one. A value type.
class MessageBudget {
 public:
  static constexpr double kAtOnce = 60;
  static constexpr double kPerSecond = 2;
  static constexpr double kPerRound = 4;

  // A message came.
  void Take(absl::Time now) {
    Refill(now);
    left_ -= 1;
  }
  // The session was given work of that round. Being given the same work again pays for nothing: a client gets that by
  // saying Ready.
  void OnAssigned(int64_t round) {
    if (round <= round_) return;
    round_ = round;
    left_ = std::min(kAtOnce, left_ + kPerRound);
  }
  // Returns the time to wait before the next message is read; zero while the session has some left.
  absl::Duration Wait(absl::Time now) {
    Refill(now);
    return left_ >= 0 ? absl::ZeroDuration() : absl::Seconds(-left_ / kPerSecond);
  }

 private:
  void Refill(absl::Time now) {
    // A clock that was set back refills nothing.
    left_ = std::min(kAtOnce, left_ + kPerSecond * std::max(0.0, absl::ToDoubleSeconds(now - updated_)));
    updated_ = now;
  }

  double left_ = kAtOnce;
  int64_t round_ = 0;
  absl::Time updated_ = absl::InfiniteFuture();  // nothing was taken yet
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_MESSAGE_BUDGET_H_
