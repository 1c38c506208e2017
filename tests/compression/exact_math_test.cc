#include "compression/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace terse {
namespace {

double Identity(float value) { return value; }

TEST(LaneSum, AddsEveryElementOnce) {
  for (size_t size : {0, 1, 7, 8, 9, 15, 16, 100}) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i + 1);
    EXPECT_EQ(LaneSum(values, Identity), size * (size + 1) / 2.0) << size;
  }
}

// Elements i and i + 8 meet before any others do: 2^53 + 1 is no double, so other orders lose the ones.
TEST(LaneSum, HasItsOrder) {
  std::vector<float> values(17, 0.0f);
  values[0] = 0x1p53f;
  values[3] = 1;
  values[11] = 1;
  EXPECT_EQ(LaneSum(values, Identity), 0x1p53 + 2);
  values[11] = 0;
  values[8] = 1;  // 2^53 + 1 in lane 0 rounds to 2^53
  values[16] = 1;
  EXPECT_EQ(LaneSum(values, Identity), 0x1p53);
  values = {0x1p53f, 1, 0, 0, 0, 1, 0, 0};  // s1 + s5 = 2 before it meets s0
  EXPECT_EQ(LaneSum(values, Identity), 0x1p53 + 2);
  values = {0x1p53f, 0, 1, 0, 0, 0, 1, 0};  // so does s2 + s6
  EXPECT_EQ(LaneSum(values, Identity), 0x1p53 + 2);
  values = {0x1p53f, 0, 0, 0, 1, 0, 1, 0};  // s0 + s4 loses s4
  EXPECT_EQ(LaneSum(values, Identity), 0x1p53);
}

TEST(LargestMagnitude, IgnoresSigns) {
  EXPECT_EQ(LargestMagnitude(std::vector<float>{1, -3, 2}), 3);
  EXPECT_EQ(FloatBits(LargestMagnitude(std::vector<float>{-0.0f, -0.0f})), 0);
  EXPECT_EQ(LargestMagnitude({}), 0);
}

TEST(NearestFloat, RoundsTiesToEvenAndSaturates) {
  EXPECT_EQ(NearestFloat(1 + 0x1p-24), 1);
  EXPECT_EQ(NearestFloat(1 + 0x1.8p-23), 1 + 0x1p-22f);
  EXPECT_EQ(NearestFloat(1e300), kLargestFloat);
  EXPECT_EQ(NearestFloat(INFINITY), kLargestFloat);
  EXPECT_EQ(NearestFloat(static_cast<double>(kLargestFloat) * (1 + 0x1p-25)), kLargestFloat);
  EXPECT_EQ(NearestFloat(0x1p-150), 0);
  EXPECT_EQ(NearestFloat(0x1.8p-150), 0x1p-149f);
}

TEST(FloatAtLeast, NeverRoundsDown) {
  EXPECT_EQ(FloatAtLeast(0), 0);
  EXPECT_EQ(FloatAtLeast(1), 1);
  EXPECT_EQ(FloatAtLeast(1 + 0x1p-50), 1 + 0x1p-23f);
  EXPECT_EQ(FloatAtLeast(1 + 0x1.cp-23), 1 + 0x1p-22f);
  EXPECT_EQ(FloatAtLeast(1e-300), 0x1p-149f);
  EXPECT_EQ(FloatAtLeast(1e300), kLargestFloat);
  EXPECT_EQ(FloatAtLeast(INFINITY), kLargestFloat);
}

}  // namespace
}  // namespace terse
