// Time as a seam: engines ask a Clock, tests set one.
#ifndef TERSE_CORE_CLOCK_H_
#define TERSE_CORE_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Unix time in microseconds, for what is stored and shown. Somebody may set it forward or back at any time.
  virtual int64_t NowMicros() = 0;
  // Microseconds since some moment before the process began, for deadlines and durations: nobody sets it.
  virtual int64_t MonotonicMicros() = 0;
};

class SystemClock : public Clock {
 public:
  int64_t NowMicros() override { return absl::ToUnixMicros(absl::Now()); }
  int64_t MonotonicMicros() override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  }
};

}  // namespace terse

#endif  // TERSE_CORE_CLOCK_H_
