#include "core/random.h"

#include <gtest/gtest.h>

#include <array>

namespace terse {
namespace {

// The published outputs of SplitMix64 for this seed.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  for (uint64_t expected : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
                            16408922859458223821u}) {
    EXPECT_EQ(random.Next(), expected);
  }
}

// The values are from an independent implementation in Python, with integers of any size.
TEST(Random, StreamsAreFixed) {
  Random seventh(42, 7);
  for (uint64_t expected : {2880332825119025868u, 303376480709518290u, 9637410528489792828u}) {
    EXPECT_EQ(seventh.Next(), expected);
  }
  Random zeroth(42, 0);
  for (uint64_t expected : {17630415256238047317u, 8971565426155258802u, 1242533817266198696u}) {
    EXPECT_EQ(zeroth.Next(), expected);
  }
  Random below(5);
  for (uint64_t expected : {386, 752, 232, 99, 187, 380, 985, 511}) EXPECT_EQ(below.Below(1000), expected);
  Random uniform(5);
  EXPECT_DOUBLE_EQ(uniform.Uniform(), 0.386768045983934);
  EXPECT_DOUBLE_EQ(uniform.Uniform(10, 20), 17.523070158382239);
}

TEST(Random, CopyKeepsThePosition) {
  Random random(9);
  random.Next();
  Random copy = random;
  EXPECT_EQ(copy.Next(), random.Next());
}

TEST(Random, BelowIsUniform) {
  constexpr int kBound = 7;
  constexpr int kDraws = 70000;
  std::array<int, kBound> counts{};
  Random random(1);
  for (int i = 0; i < kDraws; ++i) ++counts[random.Below(kBound)];
  double chi_squared = 0;
  for (int count : counts) {
    const double deviation = count - kDraws / kBound;
    chi_squared += deviation * deviation / (kDraws / kBound);
  }
  EXPECT_LT(chi_squared, 22.5);  // 0.999 quantile for 6 degrees of freedom
}

// Without the rejection, four words would map to three values and multiples of 3 would come up twice as often.
TEST(Random, BelowRejectsTheBiasOfLargeBounds) {
  constexpr uint64_t kBound = uint64_t{3} << 62;
  constexpr int kDraws = 30000;
  std::array<int, 3> residues{};
  Random random(2);
  for (int i = 0; i < kDraws; ++i) ++residues[random.Below(kBound) % 3];
  for (int count : residues) EXPECT_NEAR(count, kDraws / 3, 400);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(random.Below(1), 0);
}

TEST(Random, UniformStaysInItsRange) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
}

}  // namespace
}  // namespace terse
