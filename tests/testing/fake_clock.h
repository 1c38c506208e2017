// A clock that stands still until a test moves it, or that moves whenever it is read.
#ifndef TERSE_TESTS_TESTING_FAKE_CLOCK_H_
#define TERSE_TESTS_TESTING_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace terse {

// Thread-safe.
class FakeClock : public Clock {
 public:
  int64_t NowMicros() override { return MonotonicMicros() + unix_us_.load(); }
  int64_t MonotonicMicros() override { return now_us_.fetch_add(step_us_.load()); }
  void Advance(double seconds) { now_us_.fetch_add(static_cast<int64_t>(seconds * 1e6)); }
  // Somebody sets the machine's clock forward, or back: no time passes.
  void Set(double seconds) { unix_us_.fetch_add(static_cast<int64_t>(seconds * 1e6)); }
  // Every reading takes so long from now on: a machine with more to do than it can.
  void set_step(double seconds) { step_us_.store(static_cast<int64_t>(seconds * 1e6)); }

 private:
  std::atomic<int64_t> step_us_{0};
  std::atomic<int64_t> now_us_{50'000'000};
  std::atomic<int64_t> unix_us_{1'699'999'950'000'000};  // when now_us_ was 0: the first reading is 1.7e15
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_FAKE_CLOCK_H_
