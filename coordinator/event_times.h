// How long an engine takes for its events: a histogram that costs some ten nanoseconds an event.
#ifndef TERSE_COORDINATOR_EVENT_TIMES_H_
#define TERSE_COORDINATOR_EVENT_TIMES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace terse {

// The events that were recorded so far.
struct EventTimeCounts {
  int64_t events = 0;
  double seconds = 0;            // of all together
  std::vector<double> bounds;    // seconds, increasing
  std::vector<int64_t> at_most;  // events that took at most bounds[i]
};

// Counts by time in steps of the square root of two, from a microsecond to 1.05 s; what takes longer is in the totals
// alone. One thread records, any thread reads.
class EventTimes {
 public:
  // A batch of so many events, at least one, took `nanoseconds`, not negative, together: each counts by its share.
  void Record(int64_t nanoseconds, int64_t events = 1);
  // Events that are recorded meanwhile may be in some of the figures and not in others.
  EventTimeCounts Counts() const;

 private:
  static constexpr int kBounds = 41;

  // In nanoseconds: 1000 * 2^(i / 2), rounded.
  static const std::array<int64_t, kBounds>& Bounds();

  std::array<std::atomic<int64_t>, kBounds + 1> counts_{};  // the last: beyond all bounds
  std::atomic<int64_t> nanoseconds_{0};
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_EVENT_TIMES_H_
