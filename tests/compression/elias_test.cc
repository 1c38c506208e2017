#include "compression/elias.h"

#include <gtest/gtest.h>

#include "tests/compression/positions.h"

namespace terse {
namespace {

TEST(Elias, HasTheBitsOfTheFormat) {
  EXPECT_EQ(PositionBits(EliasGammaCoder(), {0, 1, 5, 12}, 16),
            "1"
            "1"
            "00100"
            "00111");
  EXPECT_EQ(PositionBits(EliasDeltaCoder(), {0, 1, 5, 12}, 16),
            "1"
            "1"
            "01100"
            "01111");
}

TEST(Elias, HasThePublishedLengths) {
  const int gamma[] = {1, 3, 3, 5, 5, 5, 5, 7, 7};
  const int delta[] = {1, 4, 4, 5, 5, 5, 5, 8, 8};
  for (uint32_t d = 1; d <= 9; ++d) {
    EXPECT_EQ(EliasGammaCoder().Bits({d - 1}, 100), gamma[d - 1]) << d;
    EXPECT_EQ(EliasDeltaCoder().Bits({d - 1}, 100), delta[d - 1]) << d;
  }
  EXPECT_EQ(EliasGammaCoder().Bits({999999}, 2000000), 39);
  EXPECT_EQ(EliasDeltaCoder().Bits({999999}, 2000000), 28);
}

TEST(Elias, MaxBitsIsCloseToTheLongestCode) {
  // 1000 gaps of 1024 elements each, the last one cut by one element.
  const int64_t size = 1024000;
  Positions positions;
  for (uint32_t i = 1; i <= 1000; ++i) positions.push_back(1024 * i - 1);
  EXPECT_EQ(EliasGammaCoder().Bits(positions, size), 21000);
  EXPECT_LE(EliasGammaCoder().MaxBits(1000, size), 21500);
  EXPECT_LE(EliasDeltaCoder().MaxBits(1000, size), 18500);
}

TEST(Elias, RefusesNumbersOfMoreThan31Bits) {
  const std::string zeros(31, '0');
  EXPECT_FALSE(ReadPositionBits(EliasGammaCoder(), 1, 2147483647, zeros + "1" + zeros).ok());
  EXPECT_FALSE(ReadPositionBits(EliasDeltaCoder(), 1, 2147483647,
                                "000001"
                                "00000" +
                                    zeros)
                   .ok());  // N + 1 = 32
  EXPECT_FALSE(ReadPositionBits(EliasDeltaCoder(), 1, 2147483647,
                                "0000001"
                                "000000" +
                                    zeros + zeros)
                   .ok());  // 64
}

}  // namespace
}  // namespace terse
