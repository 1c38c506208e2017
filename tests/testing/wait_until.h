// Waits for what other processes and threads do.
#ifndef TERSE_TESTS_TESTING_WAIT_UNTIL_H_
#define TERSE_TESTS_TESTING_WAIT_UNTIL_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {

// Longer than anything that is waited for takes on a slow machine.
constexpr absl::Duration kPatience = absl::Minutes(2);

// Asks again and again until `condition` holds, and returns whether it did within `timeout`.
inline bool WaitUntil(const std::function<bool()>& condition, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

inline bool Soon(const std::function<bool()>& condition) { return WaitUntil(condition, kPatience); }

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_WAIT_UNTIL_H_
