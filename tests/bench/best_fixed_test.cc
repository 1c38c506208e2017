#include "bench/paper/best_fixed.h"

#include <limits>

#include "gtest/gtest.h"

namespace terse {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(BestFixed, IsTheCheapestThatReachesTheTarget) {
  const std::vector<FixedPoint> grid = {{true, 0.99, 900}, {true, 0.988, 500}, {true, 0.9869, 10}, {true, 0.987, 700}};
  const auto best = FindBestFixed(grid, 0.003, false);
  ASSERT_TRUE(best.has_value());
  EXPECT_DOUBLE_EQ(best->target, 0.987);
  EXPECT_EQ(best->row, 1u);
  EXPECT_EQ(FindBestFixed(grid, 0, false)->row, 0u);
}

TEST(BestFixed, PerplexitiesAreBetterWhenSmaller) {
  const auto best = FindBestFixed({{true, 5.0, 900}, {true, 5.1, 400}, {true, 5.2, 10}}, 0.02, true);
  ASSERT_TRUE(best.has_value());
  EXPECT_DOUBLE_EQ(best->target, 5.1);
  EXPECT_EQ(best->row, 1u);
}

TEST(BestFixed, RowsThatChangeTheirSettingsAndBrokenRunsAreNoPoints) {
  const auto best = FindBestFixed({{false, 0.999, 1}, {true, kNaN, 1}, {true, 0.5, 100}}, 0.003, false);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row, 2u);
  EXPECT_DOUBLE_EQ(best->target, 0.497);
  EXPECT_FALSE(FindBestFixed({{false, 0.9, 1}}, 0, false).has_value());
  EXPECT_FALSE(FindBestFixed({{true, kNaN, 1}}, 0, false).has_value());
  EXPECT_FALSE(Reaches(kNaN, 0, false));
  EXPECT_FALSE(Reaches(kNaN, 0, true));
}

}  // namespace
}  // namespace terse
