// Tests the histogram of an engine's events.
#include "coordinator/event_times.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace terse {
namespace {

// The first bound that has an event under it.
double FirstBoundOf(const EventTimeCounts& counts) {
  const auto found = std::find_if(counts.at_most.begin(), counts.at_most.end(), [](int64_t n) { return n > 0; });
  return found == counts.at_most.end() ? -1 : counts.bounds[found - counts.at_most.begin()];
}

TEST(EventTimesTest, BeginsEmpty) {
  const EventTimeCounts counts = EventTimes().Counts();
  EXPECT_EQ(counts.events, 0);
  EXPECT_EQ(counts.seconds, 0);
  ASSERT_EQ(counts.bounds.size(), counts.at_most.size());
  EXPECT_DOUBLE_EQ(counts.bounds.front(), 1e-6);
  EXPECT_NEAR(counts.bounds.back(), 1.048576, 1e-9);
  EXPECT_TRUE(std::is_sorted(counts.bounds.begin(), counts.bounds.end()));
}

TEST(EventTimesTest, AnEventLiesUnderTheFirstBoundThatItDoesNotExceed) {
  for (const auto& [nanoseconds, bound] :
       {std::pair{0, 1e-6}, {1000, 1e-6}, {1001, 1.414e-6}, {1414, 1.414e-6}, {1415, 2e-6}, {5000, 5.657e-6}}) {
    EventTimes times;
    times.Record(nanoseconds);
    EXPECT_NEAR(FirstBoundOf(times.Counts()), bound, 1e-12) << nanoseconds;
  }
}

TEST(EventTimesTest, SumsAndWhatIsBeyondAllBounds) {
  EventTimes times;
  times.Record(2'000);
  times.Record(3'000);
  times.Record(5'000'000'000);
  const EventTimeCounts counts = times.Counts();
  EXPECT_EQ(counts.events, 3);
  EXPECT_NEAR(counts.seconds, 5.000005, 1e-12);
  EXPECT_EQ(counts.at_most.back(), 2);
}

}  // namespace
}  // namespace terse
