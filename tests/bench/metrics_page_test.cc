// Tests the median that is read from a histogram in Prometheus' text format.
#include "bench/fleet/metrics_page.h"

#include <gtest/gtest.h>

#include <string>

namespace terse {
namespace {

const std::string kPage =
    "# HELP h times\n# TYPE h histogram\nh_count{run=\"a\"} 10\nh_sum{run=\"a\"} 7\n"
    "h_bucket{run=\"a\",le=\"1\"} 2\nh_bucket{run=\"a\",le=\"2\"} 8\nh_bucket{run=\"a\",le=\"+Inf\"} 10\n"
    "another_h_bucket{le=\"1\"} 1000\n";

TEST(MetricsPageTest, LiesInItsBucketByStraightLines) {
  // The fifth of ten is the third of the six between 1 and 2.
  EXPECT_DOUBLE_EQ(MedianOfHistogram(kPage, "h").value(), 1.5);
}

TEST(MetricsPageTest, OfAllSeriesTogether) {
  const std::string more = kPage +
                           "h_bucket{run=\"b\",le=\"1\"} 18\nh_bucket{run=\"b\",le=\"2\"} 18\n"
                           "h_bucket{run=\"b\",le=\"+Inf\"} 18\n";
  EXPECT_DOUBLE_EQ(MedianOfHistogram(more, "h").value(), 0.7);  // 14 of the 20 below 1
}

TEST(MetricsPageTest, BeyondTheLastBound) {
  EXPECT_DOUBLE_EQ(MedianOfHistogram("h_bucket{le=\"4\"} 1\nh_bucket{le=\"+Inf\"} 9\n", "h").value(), 4);
}

TEST(MetricsPageTest, ThereIsNone) {
  EXPECT_FALSE(MedianOfHistogram(kPage, "g").has_value());
  EXPECT_FALSE(MedianOfHistogram("h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 0\n", "h").has_value());
}

}  // namespace
}  // namespace terse
