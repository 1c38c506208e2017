#include "compression/dynamic_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/feedback_table.h"
#include "compression/mcgq.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(IndexDistance, IsTheDistanceThatMassMoves) {
  // All mass three elements to the right.
  EXPECT_THAT(*IndexDistance({2, 0, 0, 0}, {0, 0, 0, -7}), DoubleEq(3));
  // P = {1/4, 3/4, 1}, Q = {1/2, 1/2, 1}: a quarter moves from 1 to 0, one from 1 to 2.
  EXPECT_THAT(*IndexDistance({1, -2, 1}, {1, 0, 1}), DoubleEq(0.5));
  EXPECT_THAT(*IndexDistance({1, -2, 1}, {-2, 4, 2}), DoubleEq(0));
  EXPECT_FALSE(IndexDistance({0, 0}, {1, 0}).has_value());
  EXPECT_FALSE(IndexDistance({1, 0}, {0, 0}).has_value());
}

TEST(IndexDistance, OfASampleIsBelowOneOverK) {
  Random random(61);
  for (double samples : {0.05, 1.0, 8.0}) {
    CodecSpec spec = SparseSpec("mcgq", 0.01);
    spec.samples = samples;
    const auto codec = *MakeCodec(spec, MakeLayout({1000}));
    const std::vector<float> update = RandomUpdate(1000, &random);
    const double distance = *IndexDistance(update, Decode(*codec, *codec->Encode(update)));
    EXPECT_GT(distance, 0);
    EXPECT_LT(distance, 1 / samples);
  }
}

// Dense messages of what the test wants to be the quantized tensors. K starts at 1, delta_K = 0.5.
TEST(DynamicSampling, StepsAsAHandWorkedExample) {
  const Layout layout = MakeLayout({3, 2});
  const auto codec = NewCodec("dense", 1, "fp32", layout);
  DynamicSampling sampling(layout, 1, 0.5);
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1, 1));
  const std::vector<float> update = {1, -2, 1, 1, 1};
  // d = 0.5 and 0.5: nothing to compare with.
  ASSERT_TRUE(sampling.Observe(*codec, update, *codec->Encode({1, 0, 1, 0, 1})).ok());
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1, 1));
  // d = 0 and 0.5: K rises by 0.5 * (0.5 - 0).
  ASSERT_TRUE(sampling.Observe(*codec, update, *codec->Encode({1, -2, 1, 0, 1})).ok());
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1.25, 1));
  // A tensor of zeros says nothing; d' stays 0.
  ASSERT_TRUE(sampling.Observe(*codec, update, *codec->Encode({0, 0, 0, 1, 1})).ok());
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1.25, 1.25));
  // d = 0.5 again: K falls.
  ASSERT_TRUE(sampling.Observe(*codec, update, *codec->Encode({1, 0, 1, 1, 1})).ok());
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1, 1.25));
}

TEST(DynamicSampling, StaysWithinItsRange) {
  const Layout layout = MakeLayout({2});
  const auto codec = NewCodec("dense", 1, "fp32", layout);
  const std::vector<float> update = {1, 1};
  const std::string exact = *codec->Encode({1, 1});
  const std::string far = *codec->Encode({1, 0});
  DynamicSampling rising(layout, 0.5, 1000);
  ASSERT_TRUE(rising.Observe(*codec, update, far).ok());
  ASSERT_TRUE(rising.Observe(*codec, update, exact).ok());
  EXPECT_THAT(rising.Rates({}), ElementsAre(8));
  ASSERT_TRUE(rising.Observe(*codec, update, far).ok());
  EXPECT_THAT(rising.Rates({}), ElementsAre(0.03125));
  DynamicSampling high(layout, 512, 100000);
  ASSERT_TRUE(high.Observe(*codec, update, far).ok());
  ASSERT_TRUE(high.Observe(*codec, update, exact).ok());
  EXPECT_THAT(high.Rates({}), ElementsAre(kMostSamples));
}

TEST(DynamicSampling, RefusesAMessageThatDoesNotDecode) {
  const Layout layout = MakeLayout({2});
  const auto codec = NewCodec("dense", 1, "fp32", layout);
  DynamicSampling sampling(layout, 1, 0.5);
  EXPECT_EQ(sampling.Observe(*codec, {1, 1}, "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sampling.Rates({}), ElementsAre(1));
}

TEST(DynamicSampling, SetsTheSamplesOfMcgq) {
  CodecSpec spec = SparseSpec("mcgq", 0.01);
  spec.samples = 1;
  spec.sampling_step = 4;
  spec.code = "positions";
  const auto codec = *MakeCodec(spec, MakeLayout({100}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  std::vector<float> delta(100, 1.0f);
  delta[3] = 100;
  ASSERT_TRUE(feedback->Compress(&delta, {}).ok());  // some d > 0
  ASSERT_TRUE(feedback->Settle(true).ok());
  delta.assign(100, 0.0f);
  delta[7] = 1e30f;
  ASSERT_TRUE(feedback->Compress(&delta, {}).ok());  // d = 0, near enough: K rises
  ASSERT_TRUE(feedback->Settle(true).ok());
  delta.assign(100, 1.0f);
  const std::vector<float> decoded = Decode(*codec, *feedback->Compress(&delta, {}));
  // With K = 1 no level were above 2.
  EXPECT_GE(*std::max_element(decoded.begin(), decoded.end()), 0.9);
  spec.sampling_step = -1;
  EXPECT_FALSE(MakeFeedback(spec, codec.get()).ok());
}

}  // namespace
}  // namespace terse
