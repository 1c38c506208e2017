#include "compression/counter_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "compression/philox_kernels.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Draws(const CodecKey& key, int64_t tensor, int64_t first, int64_t count) {
  std::vector<uint32_t> words(count);
  CounterRandom(key, tensor).Fill(first, absl::MakeSpan(words));
  return words;
}

// kat_vectors of the authors' Random123 library.
TEST(Philox, HasThePublishedKnownAnswers) {
  EXPECT_THAT(PhiloxBlock({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t ones = 0xffffffff;
  EXPECT_THAT(PhiloxBlock({ones, ones, ones, ones}, {ones, ones}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(PhiloxBlock({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

// From the text of compression/FORMAT.md, by tests/golden/philox.py: draws((2018, 7, 3), 5, 6).
TEST(CounterRandom, HasTheDrawsOfItsFormat) {
  EXPECT_THAT(Draws({2018, 7, 3}, 5, 0, 6),
              ElementsAre(0x29d62b7f, 0xeec63de0, 0xb8498608, 0x25c51502, 0x5bb88dcb, 0x89a87d2d));
}

TEST(CounterRandom, GivesTheSameDrawsInAnyOrderAndInAnyParts) {
  const CodecKey key = {1, 2, 3};
  const std::vector<uint32_t> all = Draws(key, 4, 0, 1000);
  const CounterRandom random(key, 4);
  for (int64_t i = 999; i >= 0; --i) ASSERT_EQ(random.At(i), all[i]) << i;
  for (int64_t first : {0, 1, 2, 3, 4, 5, 479, 480, 998}) {
    for (int64_t count : {0, 1, 2, 3, 4, 5, 8, 480}) {
      if (first + count > 1000) continue;
      EXPECT_EQ(Draws(key, 4, first, count), std::vector<uint32_t>(all.begin() + first, all.begin() + first + count))
          << first << " " << count;
    }
  }
}

TEST(CounterRandom, GivesOtherDrawsToEveryRunRoundClientAndTensor) {
  std::set<std::vector<uint32_t>> streams;
  int made = 0;
  for (uint64_t run : {0, 1, 2}) {
    for (uint64_t round : {0, 1, 2}) {
      for (uint64_t client : {0, 1, 2}) {
        for (int64_t tensor : {0, 1, 2}) {
          streams.insert(Draws({run, round, client}, tensor, 0, 4));
          ++made;
        }
      }
    }
  }
  // Halves of a word count too.
  streams.insert(Draws({uint64_t{1} << 40, 0, 0}, 0, 0, 4));
  streams.insert(Draws({0, uint64_t{1} << 40, 0}, 0, 0, 4));
  streams.insert(Draws({0, 0, uint64_t{1} << 40}, 0, 0, 4));
  EXPECT_EQ(streams.size(), made + 3);
}

TEST(CounterRandom, ReachesTheLastElementOfTheLargestModel) {
  const CounterRandom random({1, 2, 3}, 0);
  const int64_t last = (int64_t{1} << 31) - 2;
  uint32_t word = 0;
  random.Fill(last, absl::MakeSpan(&word, 1));
  EXPECT_EQ(word, random.At(last));
  EXPECT_NE(word, random.At(last - 4));
}

TEST(CounterRandom, IsUniform) {
  constexpr int kDraws = 1 << 18;
  constexpr int kBins = 64;
  const std::vector<uint32_t> words = Draws({20180522, 0, 0}, 0, 0, kDraws);
  int bins[kBins] = {};
  int ones[32] = {};
  double mean = 0;
  for (uint32_t word : words) {
    ++bins[word >> 26];
    mean += UniformDouble(word) / kDraws;
    for (int bit = 0; bit < 32; ++bit) ones[bit] += word >> bit & 1;
  }
  double chi_square = 0;
  for (int count : bins) chi_square += (count - kDraws / kBins) * (count - kDraws / kBins) / (kDraws * 1.0 / kBins);
  EXPECT_LT(chi_square, 63 + 5 * 11.3);  // 63 degrees of freedom, standard deviation sqrt(126)
  EXPECT_GT(chi_square, 63 - 5 * 11.3);
  EXPECT_NEAR(mean, 0.5, 5 * 0.2887 / 512);
  for (int count : ones) EXPECT_NEAR(count, kDraws / 2, 5 * 256);
}

TEST(UniformNumbers, AreExactAndBelowOne) {
  EXPECT_EQ(UniformDouble(0), 0.0);
  EXPECT_EQ(UniformDouble(0xffffffff), 1 - 0x1p-32);
  EXPECT_EQ(UniformDouble(0x80000001), 0.5 + 0x1p-32);
}

}  // namespace
}  // namespace terse
