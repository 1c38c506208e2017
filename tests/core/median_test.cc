#include "core/median.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace terse {
namespace {

double Of(std::vector<double> values) { return MedianOf(absl::MakeSpan(values)); }

TEST(Median, IsTheMiddleOfAnOddCount) {
  EXPECT_EQ(Of({7}), 7);
  EXPECT_EQ(Of({100, 1, 5}), 5);
}

TEST(Median, IsTheMeanOfTheTwoInTheMiddleOfAnEvenCount) {
  EXPECT_EQ(Of({5, 1}), 3);
  EXPECT_EQ(Of({9, -2, 4, 100}), 6.5);
}

TEST(Median, DoesNotOverflow) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(Of({largest, largest}), largest);
}

}  // namespace
}  // namespace terse
