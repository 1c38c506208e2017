#include "compression/run_length.h"

#include <gtest/gtest.h>

#include "tests/compression/positions.h"

namespace terse {
namespace {

TEST(RunLength, HasTheBitsOfTheFormat) {
  EXPECT_EQ(PositionBits(RunLengthCoder(), {0, 1, 5, 12}, 16),
            "11000"
            "000"
            "000"
            "110"
            "011");
  // 4 zeros with counters of one bit: four that continue, one that ends.
  EXPECT_EQ(PositionBits(RunLengthCoder(), {0, 1, 2, 7, 8, 9, 10, 11}, 12),
            "10000"
            "0"
            "0"
            "0"
            "11110"
            "0000");
}

TEST(RunLength, TakesTheCheapestWidthAndOfSeveralTheSmallest) {
  // One gap of 2 zeros: three counters of one bit, or one of two; of 2^31 - 2 zeros: one of 31 bits.
  EXPECT_EQ(PositionBits(RunLengthCoder(), {2}, 3),
            "01000"
            "01");
  EXPECT_EQ(RunLengthCoder().Bits({2147483646}, 2147483647), 5 + 31);
  EXPECT_EQ(PositionBits(RunLengthCoder(), {1}, 2),
            "10000"
            "10");  // and two bits in one counter
}

TEST(RunLength, RefusesAWidthThatTheEncoderWouldNotTake) {
  EXPECT_TRUE(ReadPositionBits(RunLengthCoder(), 1, 3,
                               "01000"
                               "01")
                  .ok());
  EXPECT_FALSE(ReadPositionBits(RunLengthCoder(), 1, 3,
                                "10000"
                                "110")
                   .ok());
  EXPECT_FALSE(ReadPositionBits(RunLengthCoder(), 1, 3,
                                "11000"
                                "010")
                   .ok());
  EXPECT_FALSE(ReadPositionBits(RunLengthCoder(), 1, 2,
                                "01000"
                                "10")
                   .ok());  // as short as one bit, but wider
  EXPECT_FALSE(ReadPositionBits(RunLengthCoder(), 1, 3,
                                "00000"
                                "00000000")
                   .ok());
}

TEST(Fixed16, TakesSixteenBitsInTensorsOf65535Elements) {
  Random random(1);
  EXPECT_EQ(Fixed16Coder().Bits(RandomPositions(300, 65535, &random), 65535), 300 * 16);
  EXPECT_EQ(Fixed16Coder().Bits({65534}, 65536), 16);
  EXPECT_EQ(Fixed16Coder().Bits({65535}, 65536), 32);
}

TEST(Fixed16, ContinuesBeyond65535Zeros) {
  const std::string full(16, '1'), none(16, '0');
  EXPECT_EQ(PositionBits(Fixed16Coder(), {0, 65536, 196608}, 200000),
            none + full + none + full + full + "10" + std::string(14, '0'));
}

TEST(Fixed16, RefusesASumThatWouldWrapAround) {
  // 65537 counters of 65535 are 2^32 - 1 zeros, and one more is none modulo 2^32.
  const ExactBytes bytes(std::string(2 * 65537, '\xff') + std::string("\1\0", 2));
  EXPECT_FALSE(DecodePositions(Fixed16Coder(), 1, 2147483647, bytes.After(0)).ok());
}

}  // namespace
}  // namespace terse
