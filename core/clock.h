// Time as a seam: engines ask a Clock, tests set one.
#ifndef TERSE_CORE_CLOCK_H_
#define TERSE_CORE_CLOCK_H_

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace terse {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Unix time in microseconds.
  virtual int64_t NowMicros() = 0;
};

class SystemClock : public Clock {
 public:
  int64_t NowMicros() override { return absl::ToUnixMicros(absl::Now()); }
};

}  // namespace terse

#endif  // TERSE_CORE_CLOCK_H_
