#include "compression/gap_class.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/compression/positions.h"

namespace terse {
namespace {

std::string Field(uint32_t value, int width) {
  std::string bits;
  for (int i = 0; i < width; ++i) bits.push_back(static_cast<char>('0' + (value >> i & 1)));
  return bits;
}

// The example of FORMAT.md.
const int kExampleSize = 16;
const Positions& Example() {
  static const auto* const positions = new Positions{0, 1, 5, 12};
  return *positions;
}
std::string ExampleBits(const std::string& levels, uint32_t state) {
  return absl::StrCat("101000", levels, Field(state, 32), "0");
}
constexpr char kLevels[] = "1111 0000 0000 1011 0000 1011";

absl::Status ReadExample(const std::string& bits) { return ReadPositionBits(GapClassCoder(), 4, kExampleSize, bits); }

TEST(GapClass, HasTheBitsOfTheFormat) {
  EXPECT_EQ(BytesOfBits(PositionBits(GapClassCoder(), Example(), kExampleSize)),
            BytesOfBits(ExampleBits(kLevels, 4251648)));
  EXPECT_TRUE(ReadExample(ExampleBits(kLevels, 4251648)).ok());
}

TEST(GapClass, TakesNoBitsForGapsOfOneClass) {
  Positions positions(5000);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = 3 * i + 2;
  EXPECT_EQ(GapClassCoder().Bits(positions, 15000), 6 + 3 * 4 + 32);
}

TEST(GapClass, RefusesTablesThatTheEncoderWouldNotMake) {
  // These levels give the same frequencies: twice the weights, half of them, and an unused class.
  EXPECT_FALSE(ReadExample(ExampleBits("0111 0000 0000 0011 0000 0011", 4251648)).ok());
  EXPECT_FALSE(ReadExample(absl::StrCat("011000", kLevels, "0000", Field(4251648, 32), "0")).ok());
  EXPECT_FALSE(ReadExample(absl::StrCat("011111", std::string(63 * 4, '1'), Field(4251648, 32), "0")).ok());
  // Levels that fit together and that decode, but are not those of these gaps.
  EXPECT_FALSE(ReadPositionBits(GapClassCoder(), 1, 10, absl::StrCat("100000 1111 1111", Field(0x20000, 32))).ok());
  EXPECT_TRUE(ReadPositionBits(GapClassCoder(), 1, 10, absl::StrCat("000000 1111", Field(0x10000, 32))).ok());
}

TEST(GapClass, RefusesStatesThatTheEncoderDoesNotReach) {
  EXPECT_FALSE(ReadExample(ExampleBits(kLevels, 4251649)).ok());
  EXPECT_FALSE(ReadExample(ExampleBits(kLevels, 4251648 + 4096)).ok());
  EXPECT_FALSE(ReadExample(ExampleBits(kLevels, 0xffff) + std::string(200, '0')).ok());
  // This state is below the lowest one, but returns to it with a word of zeros.
  EXPECT_FALSE(
      ReadPositionBits(GapClassCoder(), 1, 10, absl::StrCat("000000 1111", Field(1, 32), std::string(16, '0'))).ok());
  // One class takes nothing from the state, so only its value tells.
  EXPECT_FALSE(ReadPositionBits(GapClassCoder(), 1, 10, absl::StrCat("000000 1111", Field(0x10001, 32))).ok());
}

TEST(GapClass, RoundsLevelsHalvesUp) {
  // 5 of 8 is halfway between the weights 128 and 192 of 256.
  Positions positions;
  for (uint32_t i = 0; i < 8; ++i) positions.push_back(i);
  for (uint32_t i = 0; i < 5; ++i) positions.push_back(9 + 2 * i);
  EXPECT_EQ(PositionBits(GapClassCoder(), positions, 100).substr(0, 14), "10000011110111");
  positions.pop_back();
  EXPECT_EQ(PositionBits(GapClassCoder(), positions, 100).substr(0, 14), "10000011111011");
}

TEST(GapClass, KeepsARareClassAmongManyFrequentOnes) {
  // 40 frequent classes: the share of the rare one rounds down to 0 of 4096, and is 1 nevertheless.
  Positions positions;
  uint32_t next = 0;
  const auto add = [&](uint32_t zeros) {
    positions.push_back(next + zeros);
    next = positions.back() + 1;
  };
  for (int i = 0; i < 150; ++i) {
    for (uint32_t c = 0; c < 40; ++c) add(c < 4 ? c : (2 + c % 2) << (c / 2 - 1));
  }
  add(uint32_t{2} << 21);
  const int64_t size = next, count = static_cast<int64_t>(positions.size());
  const ExactBytes bytes(EncodePositions(GapClassCoder(), positions, size));
  const auto decoded = DecodePositions(GapClassCoder(), count, size, bytes.After(0));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->positions, positions);
}

}  // namespace
}  // namespace terse
