// Vectors on their way through the shared memory.
#include "trainer/take_result.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace terse {
namespace {

// Against the definition, at every length and for values of all kinds.
TEST(RoundToBfloat16, IsTheNearestOne) {
  const auto widened = [](uint32_t half) {
    const uint32_t bits = half << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  std::vector<float> values = {0,
                               -0.0f,
                               1,
                               -1.00390625f,
                               1.01171875f,
                               std::numeric_limits<float>::max(),
                               -std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::denorm_min()};
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t bits = i * 0x01a2b3c5U;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) values.push_back(value);
  }
  for (size_t size = 0; size <= values.size(); size += size < 40 ? 1 : 97) {
    std::vector<uint16_t> rounded(size + 1, 0x1234);
    const auto some = absl::MakeConstSpan(values).subspan(values.size() - size);
    RoundToBfloat16(some, absl::MakeSpan(rounded).subspan(0, size));
    EXPECT_EQ(rounded[size], 0x1234);
    for (size_t i = 0; i < size; ++i) {
      const double error = std::abs(double{widened(rounded[i])} - some[i]);
      EXPECT_TRUE(std::isfinite(widened(rounded[i])));
      for (const int step : {-1, 1}) {
        const float neighbour = widened((rounded[i] + step) & 0xffff);
        if (!std::isfinite(neighbour)) continue;
        const double other = std::abs(double{neighbour} - some[i]);
        EXPECT_TRUE(error < other || (error == other && rounded[i] % 2 == 0)) << some[i];
      }
      EXPECT_EQ(std::signbit(widened(rounded[i])), std::signbit(some[i]));
    }
  }
}

// Any alignment and any rest of a vector.
TEST(TakeResult, SubtractsEverythingAndFindsWhatIsNotFinite) {
  std::vector<float> left(100), weights(100), delta(100);
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<float>(i);
    weights[i] = static_cast<float>(2 * i);
  }
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size < 30; ++size) {
      const auto from = absl::MakeConstSpan(left).subspan(begin, size),
                 less = absl::MakeConstSpan(weights).subspan(3, size);
      std::fill(delta.begin(), delta.end(), -1);
      ASSERT_TRUE(TakeResult(from, less, absl::MakeSpan(delta).subspan(begin, size)));
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(delta[begin + i], from[i] - less[i]);
      ASSERT_EQ(delta[begin + size], -1);
      ASSERT_TRUE(TakeResult(from, {}, absl::MakeSpan(delta).subspan(begin, size)));
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(delta[begin + i], from[i]);
      for (size_t i = 0; i < size; ++i) {
        const float good = left[begin + i];
        for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
          left[begin + i] = bad;
          ASSERT_FALSE(TakeResult(from, less, absl::MakeSpan(delta).subspan(begin, size)));
          ASSERT_FALSE(TakeResult(from, {}, absl::MakeSpan(delta).subspan(begin, size)));
        }
        left[begin + i] = good;
      }
    }
  }
}

}  // namespace
}  // namespace terse
