#include "compression/random_sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "compression/counter_random.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Spec(double density, const std::string& code) {
  CodecSpec spec = SparseSpec("random_sparse", density);
  spec.code = code;
  return spec;
}

EncodeOptions KeyOfRound(uint64_t round) {
  EncodeOptions options;
  options.key = {3, round, 4};
  return options;
}

// Each of the 10 pairs of 5 elements comes equally often: 30,000 draws, 5 standard deviations of a binomial around
// 3,000.
TEST(RandomSparse, ChoosesEverySetEquallyOften) {
  std::map<std::vector<uint32_t>, int> seen;
  for (uint64_t seed = 0; seed < 30000; ++seed) ++seen[ChoosePositions(seed, 1, 2, 5)];
  EXPECT_EQ(seen.size(), 10u);
  for (const auto& set : seen) EXPECT_NEAR(set.second, 3000, 5 * std::sqrt(3000 * 0.9));
}

TEST(RandomSparse, ChoosesDistinctPositionsInOrder) {
  for (int64_t size : {1, 63, 64, 65, 1000}) {
    for (int64_t count : {int64_t{1}, (size + 1) / 2, size}) {
      const std::vector<uint32_t> positions = ChoosePositions(7, 0, count, size);
      ASSERT_EQ(positions.size(), static_cast<size_t>(count));
      for (size_t i = 1; i < positions.size(); ++i) EXPECT_LT(positions[i - 1], positions[i]);
      EXPECT_LT(positions.back(), size);
    }
  }
}

// Floyd's algorithm as FORMAT.md has it, where some words in a hundred must be drawn again.
TEST(RandomSparse, IsTheDocumentedAlgorithm) {
  const int64_t size = 67000000;
  const int64_t count = 1000;
  const CounterRandom random({77, 0, 0}, 3);
  std::set<uint32_t> chosen;
  int64_t draw = 0;
  int again = 0;
  for (uint64_t range = size - count + 1; range <= static_cast<uint64_t>(size); ++range) {
    uint64_t product = random.At(draw++) * range;
    for (; (product & 0xffffffff) < (uint64_t{1} << 32) % range; ++again) product = random.At(draw++) * range;
    if (!chosen.insert(static_cast<uint32_t>(product >> 32)).second) chosen.insert(static_cast<uint32_t>(range - 1));
  }
  EXPECT_GT(again, 0);
  EXPECT_EQ(ChoosePositions(77, 3, count, size), std::vector<uint32_t>(chosen.begin(), chosen.end()));
}

TEST(RandomSparse, SendsValuesAsTheyAreOrScaled) {
  const std::vector<float> update = {1, 2, 3, 4};
  const Layout layout = MakeLayout({4});
  const auto simple = *MakeCodec(Spec(0.5, "simple"), layout);
  const auto unbiased = *MakeCodec(Spec(0.5, "unbiased"), layout);
  for (uint64_t round = 0; round < 20; ++round) {
    const std::vector<int64_t> sent = **simple->SentPositions(*simple->Encode(update, KeyOfRound(round)));
    ASSERT_EQ(sent.size(), 2u);
    std::vector<float> expected(4, 0.0f);
    for (int64_t position : sent) expected[position] = update[position];
    EXPECT_EQ(Decode(*simple, *simple->Encode(update, KeyOfRound(round))), expected);
    for (float& value : expected) value *= 2;
    EXPECT_EQ(Decode(*unbiased, *unbiased->Encode(update, KeyOfRound(round))), expected);
  }
}

// An element arrives as n / k times itself with probability k / n = 0.2: a variance of 4 g^2.
TEST(RandomSparse, IsUnbiasedWhenScaled) {
  Random random(31);
  const Layout layout = MakeLayout({30, 20});
  const std::vector<float> update = RandomUpdate(50, &random);
  const auto codec = *MakeCodec(Spec(0.2, "unbiased"), layout);
  constexpr int kKeys = 4000;
  std::vector<double> sums(50, 0.0);
  for (uint64_t round = 0; round < kKeys; ++round) {
    const std::vector<float> decoded = Decode(*codec, *codec->Encode(update, KeyOfRound(round)));
    for (int i = 0; i < 50; ++i) sums[i] += decoded[i];
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(sums[i] / kKeys, update[i], 5 * 2 * std::fabs(update[i]) / std::sqrt(kKeys)) << i;
  }
}

TEST(RandomSparse, CostsASeedAndTheValues) {
  const auto codec = *MakeCodec(Spec(0.1, "simple"), MakeLayout({100, 5}));
  const std::vector<float> update(105, 0.0f);
  EXPECT_EQ(*codec->CostBits(update), 64 + 32 * 11);
  EXPECT_EQ(codec->Encode(update)->size(), 1u + 8 + 4 * 11);
  EXPECT_EQ(codec->MaxMessageBytes(), 1 + 8 + 4 * 11);
}

TEST(RandomSparse, KnowsTheWholeRangeOfFloat32) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  const auto all = *MakeCodec(Spec(1, "unbiased"), MakeLayout({3}));
  EXPECT_THAT(Decode(*all, *all->Encode({smallest, -largest, 0})), ElementsAre(smallest, -largest, 0));
  const auto half = *MakeCodec(Spec(0.5, "unbiased"), MakeLayout({2}));
  EXPECT_THAT(Decode(*half, *half->Encode({-largest, -largest})), ::testing::Contains(-largest));
}

TEST(RandomSparse, RefusesWhatIsNotFiniteWhereverItStands) {
  const auto codec = *MakeCodec(Spec(0.01, "simple"), MakeLayout({2, 200}));
  for (int64_t at : {2, 77, 201}) {
    std::vector<float> update(202, 1.0f);
    update[at] = std::nanf("");
    EXPECT_THAT(codec->Encode(update).status().message(), HasSubstr(absl::StrCat("'t1', index ", at - 2, ":")));
    EXPECT_FALSE(codec->CostBits(update).ok());
  }
}

TEST(RandomSparse, RefusesWhatEncodeDoesNotMake) {
  const auto codec = *MakeCodec(Spec(0.5, "simple"), MakeLayout({4}));
  const std::string good = *codec->Encode({1, 1, 1, 1});
  EXPECT_TRUE(codec->Validate(good).ok());
  EXPECT_THAT(codec->Validate(good.substr(0, 8)).message(), HasSubstr("inside its seed"));
  EXPECT_THAT(codec->Validate(good.substr(0, good.size() - 1)).message(), HasSubstr("inside its values"));
  EXPECT_FALSE(codec->Validate(good + '\0').ok());
  std::string infinite = good;
  StoreLittle32(0xff800000u, &infinite[13]);
  EXPECT_THAT(codec->Validate(infinite).message(), HasSubstr("a value of -inf"));
}

TEST(RandomSparse, RefusesSettingsOutOfRange) {
  EXPECT_THAT(MakeCodec(Spec(0, "simple"), MakeLayout({4})).status().message(), HasSubstr("codec.density"));
  EXPECT_THAT(MakeCodec(Spec(0.5, "elias"), MakeLayout({4})).status().message(), HasSubstr("codec.code"));
}

}  // namespace
}  // namespace terse
