#include "coordinator/event_times.h"

#include <algorithm>
#include <cmath>

namespace terse {

const std::array<int64_t, EventTimes::kBounds>& EventTimes::Bounds() {
  static const std::array<int64_t, kBounds> bounds = [] {
    std::array<int64_t, kBounds> made{};
    for (int i = 0; i < kBounds; ++i) made[i] = std::llround(1000 * std::exp2(0.5 * i));
    return made;
  }();
  return bounds;
}

void EventTimes::Record(int64_t nanoseconds, int64_t events) {
  const auto& bounds = Bounds();
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), nanoseconds / events) - bounds.begin();
  counts_[bucket].fetch_add(events, std::memory_order_relaxed);
  nanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed);
}

EventTimeCounts EventTimes::Counts() const {
  EventTimeCounts counts;
  for (int i = 0; i <= kBounds; ++i) {
    counts.events += counts_[i].load(std::memory_order_relaxed);
    if (i == kBounds) break;
    counts.bounds.push_back(1e-9 * static_cast<double>(Bounds()[i]));
    counts.at_most.push_back(counts.events);
  }
  counts.seconds = 1e-9 * static_cast<double>(nanoseconds_.load(std::memory_order_relaxed));
  return counts;
}

}  // namespace terse
