#include "core/norm_code.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace terse {
namespace {

TEST(NormCode, IsAQuarterOfAnOctave) {
  EXPECT_EQ(NormCode(1), 64);
  EXPECT_EQ(NormCode(2), 68);
  EXPECT_EQ(NormCode(0.5), 60);
  EXPECT_EQ(NormCode(1.19), 65);
  EXPECT_EQ(NormCode(1.09), 64);
  EXPECT_EQ(NormCode(1.1), 65);
  EXPECT_EQ(NormFrom(64), 1);
  EXPECT_EQ(NormFrom(72), 4);
  EXPECT_DOUBLE_EQ(NormFrom(65), std::sqrt(std::sqrt(2.0)));
}

TEST(NormCode, ComesBackWithinAnEighthOfAnOctave) {
  const double most = std::exp2(0.125) * (1 + 1e-12);
  for (double norm = std::exp2(-15.75); norm <= std::exp2(15.75); norm *= 1.003) {
    const int code = NormCode(norm);
    ASSERT_GE(code, 1);
    ASSERT_LE(code, kMostNormCode);
    const double ratio = NormFrom(code) / norm;
    EXPECT_LE(ratio, most) << norm;
    EXPECT_GE(ratio, 1 / most) << norm;
  }
  for (int code = 0; code <= kMostNormCode; ++code) EXPECT_EQ(NormCode(NormFrom(code)), code);
}

TEST(NormCode, ZeroIsItsOwnAndTheEndsStandForWhatLiesBeyond) {
  EXPECT_EQ(NormCode(0), 0);
  EXPECT_EQ(NormFrom(0), 0);
  EXPECT_EQ(NormCode(1e-300), 1) << "little is not nothing";
  EXPECT_EQ(NormCode(std::numeric_limits<double>::denorm_min()), 1);
  EXPECT_EQ(NormCode(1e300), kMostNormCode);
  EXPECT_EQ(NormCode(std::numeric_limits<double>::infinity()), kMostNormCode);
  EXPECT_EQ(NormCode(std::nan("")), kMostNormCode);
}

}  // namespace
}  // namespace terse
