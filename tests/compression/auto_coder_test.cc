// Tests the purpose of the choice between coders: figures on random and on clustered positions.
#include "compression/auto_coder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compression/elias.h"
#include "compression/position_coder_table.h"
#include "compression/rice.h"
#include "tests/compression/positions.h"

namespace terse {
namespace {

std::map<std::string, double> Costs(const Positions& positions, int64_t size) {
  std::map<std::string, double> costs;
  for (const PositionCost& cost : PositionCosts(positions, size)) costs[cost.coder] = cost.bits_per_position;
  return costs;
}

// log2 of the number of sets of `count` among `size`, per position.
double SetEntropy(int64_t count, int64_t size) {
  const auto log_factorial = [](int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  return (log_factorial(size) - log_factorial(count) - log_factorial(size - count)) / std::log(2.0) /
         static_cast<double>(count);
}

TEST(PositionCosts, OnRandomPositionsAreNearEntropy) {
  Random random(1);
  const int64_t size = 400000, count = 4000;
  auto costs = Costs(RandomPositions(count, size, &random), size);
  const double entropy = SetEntropy(count, size);
  EXPECT_NEAR(entropy, 8.077, 0.001);
  EXPECT_LT(costs["rice"], entropy * 1.006);
  EXPECT_LT(costs["golomb"], entropy * 1.005);
  EXPECT_LT(costs["gap_class"], entropy * 1.010);
  EXPECT_GT(costs["elias_delta"], entropy * 1.2);
  EXPECT_EQ(costs["fixed16"], 16);
}

TEST(PositionCosts, OnClusteredPositionsAreLowestForGapClasses) {
  Random random(2);
  for (int i = 0; i < 3; ++i) {
    const Positions positions = ClusteredPositions(500, 800, 0.01, 1.5, &random);
    auto costs = Costs(positions, 400000);
    EXPECT_GT(costs["rice"], 8.1);
    EXPECT_GT(costs["golomb"], 8.1);
    EXPECT_GT(costs["gap_class"], 7.0);
    EXPECT_LT(costs["gap_class"], 7.7);
    EXPECT_LE(costs["auto"], costs["gap_class"] + 3.0 / static_cast<double>(positions.size()));
  }
}

TEST(AutoCoder, TakesTheFewestBitsAndOfSeveralTheFirst) {
  const std::pair<const char*, const char*> choices[] = {
      {"rice", "1"}, {"golomb", "000"}, {"gap_class", "010"}, {"elias_gamma", "001"}, {"elias_delta", "011"}};
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const int64_t columns = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(9)));
    const Positions positions = ClusteredPositions(50, columns, 0.05, random.Uniform(0, 3), &random);
    if (positions.empty()) continue;
    const int64_t size = 50 * columns;
    std::string shortest;
    for (const auto& choice : choices) {
      const std::string bits = choice.second + PositionBits(**FindPositionCoder(choice.first), positions, size);
      if (shortest.empty() || bits.size() < shortest.size()) shortest = bits;
    }
    ASSERT_EQ(PositionBits(AutoCoder(), positions, size), shortest);
    EXPECT_LE(AutoCoder().Bits(positions, size), RiceCoder().Bits(positions, size) + 1);
  }
}

TEST(AutoCoder, SelectsByTheBitsOfTheFormat) {
  const auto bits = [](const Positions& positions, int64_t size) { return PositionBits(AutoCoder(), positions, size); };
  EXPECT_EQ(bits({0, 1, 5, 12}, 16),
            "1"
            "0010"
            "11010001");
  const Positions crowd = {10, 11, 12, 13, 14};
  EXPECT_EQ(bits(crowd, 1000), "001" + PositionBits(EliasGammaCoder(), crowd, 1000));
}

TEST(AutoCoder, TakesRiceInSmallTensors) {
  Random random(4);
  for (int64_t size : {10, 20, 50, 500}) {
    const Positions positions = RandomPositions(std::max<int64_t>(1, size / 100), size, &random);
    EXPECT_EQ(PositionBits(AutoCoder(), positions, size), "1" + PositionBits(RiceCoder(), positions, size));
  }
}

TEST(AutoCoder, ReadsChoicesThatItWouldNotMake) {
  // The documented exception: golomb where rice is shorter by its selector.
  EXPECT_TRUE(ReadPositionBits(AutoCoder(), 4, 16,
                               "0"
                               "00"
                               "0010"
                               "11010001")
                  .ok());
}

}  // namespace
}  // namespace terse
