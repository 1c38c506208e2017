#include "compression/golomb.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compression/rice.h"
#include "tests/compression/positions.h"

namespace terse {
namespace {

// The rule of Gallager and Van Voorhis in the widest floating point.
int64_t PaperParameter(int64_t count, int64_t size) {
  if (count == size) return 1;
  const long double p = static_cast<long double>(count) / size;
  return static_cast<int64_t>(std::ceil(std::log(2 - p) / -std::log1p(-p)));
}

TEST(GolombParameter, TakesKnownValues) {
  EXPECT_EQ(GolombParameter(1, 100), 69);
  EXPECT_EQ(GolombParameter(1, 10), 7);
  EXPECT_EQ(GolombParameter(1, 2), 1);
  EXPECT_EQ(GolombParameter(5, 5), 1);
  EXPECT_EQ(GolombParameter(1, 1), 1);
  EXPECT_EQ(GolombParameter(1, 2147483647), 1488522235);
}

TEST(GolombParameter, EqualsTheRuleOfThePaper) {
  for (int64_t size : {1, 2, 3, 10, 97, 1000, 4096, 30011}) {
    for (int64_t count = 1; count <= size; ++count) {
      ASSERT_EQ(GolombParameter(count, size), PaperParameter(count, size)) << count << " of " << size;
    }
  }
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const int64_t size = static_cast<int64_t>((uint64_t{1} << 30) + random.Below(uint64_t{1} << 30));
    const int64_t count = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(30)));
    const double parameter = static_cast<double>(GolombParameter(count, size));
    ASSERT_NEAR(parameter, static_cast<double>(PaperParameter(count, size)), parameter * 1e-8);
  }
}

TEST(Golomb, HasTheBitsOfTheFormat) {
  // M = 7, w = 2, u = 1: zeros 9 are 1 and a long remainder 2, whose 3 bits 011 are split into 01 and 1.
  EXPECT_EQ(PositionBits(GolombCoder(), {9}, 10),
            "10"
            "01"
            "1");
  EXPECT_EQ(PositionBits(GolombCoder(), {7}, 10),
            "00"
            "01");
  EXPECT_EQ(PositionBits(GolombCoder(), {0, 1, 5, 12}, 16),
            "0010"
            "11010001");
  EXPECT_EQ(PositionBits(GolombCoder(), {0, 1, 2}, 3), "111");
}

TEST(Golomb, TakesTheBitsOfTruncatedBinaryRemainders) {
  Random random(2);
  for (int64_t count : {1, 40, 300}) {
    const int64_t size = 5000, m = GolombParameter(count, size);
    const int width = static_cast<int>(std::ceil(std::log2(m)));
    const Positions positions = RandomPositions(count, size, &random);
    int64_t bits = 0, next = 0;
    for (uint32_t position : positions) {
      const int64_t zeros = position - next;
      bits += zeros / m + 1 + (zeros % m < (int64_t{1} << width) - m ? width - 1 : width);
      next = position + 1;
    }
    EXPECT_EQ(GolombCoder().Bits(positions, size), bits) << count;
  }
}

TEST(Golomb, IsShorterThanRiceOnAverageWhereRicesPowerOfTwoIsFarOff) {
  Random random(3);
  const int64_t size = 100000, count = 11500;  // M = 6
  int64_t golomb = 0, rice = 0;
  for (int i = 0; i < 10; ++i) {
    const Positions positions = RandomPositions(count, size, &random);
    golomb += GolombCoder().Bits(positions, size);
    rice += RiceCoder().Bits(positions, size);
  }
  EXPECT_LT(golomb, rice);
}

TEST(Golomb, RefusesQuotientsThatWouldWrapAround) {
  // M = 1488522235: two or more times that lies past the tensor, and eight times it is below it modulo 2^32.
  const std::string fixed(30, '0');
  EXPECT_TRUE(ReadPositionBits(GolombCoder(), 1, 2147483647, fixed + "1").ok());
  for (const char* quotient : {"001", "0001", "00001", "000001", "0000001", "00000001", "000000001"}) {
    EXPECT_EQ(ReadPositionBits(GolombCoder(), 1, 2147483647, fixed + quotient).code(),
              absl::StatusCode::kInvalidArgument)
        << quotient;
  }
}

}  // namespace
}  // namespace terse
