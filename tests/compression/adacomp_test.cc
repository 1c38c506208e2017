#include "compression/adacomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/error_feedback.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Layout Convolution(int64_t size) { return *Layout::Create({{"conv", {size, 1, 1, 1}}}); }

std::vector<float> RoundTrip(const Layout& layout, const std::vector<float>& update, const std::vector<float>& latest) {
  const auto codec = *MakeCodec(SparseSpec("adacomp", 0.01), layout);
  EncodeOptions options;
  options.latest = latest;
  return Decode(*codec, *codec->Encode(update, options));
}

// One bin: the largest |G| is 4. H = {1, 4.5, -4, 3.75, -4, 0}: sent are those of at least 4, worth sign(G) * 4.
TEST(AdaComp, SendsAHandWorkedBin) {
  EXPECT_THAT(RoundTrip(MakeLayout({6}), {0.5, 2.5, -4, 3, -1, 0}, {0.5, 2, 0, 0.75, -3, 0}),
              ElementsAre(0, 4, -4, 0, -4, 0));
}

// Bins of 50 with largest 1, 3 and 0: the mean is 4 / 3. In the second bin H = 2 * 1.5 reaches 3, 2 * 1.25 does not.
TEST(AdaComp, HasOneMagnitudeATensorTheMeanOverBins) {
  std::vector<float> update(150, 0.0f);
  update[7] = -1;
  update[50] = 3;
  update[60] = -1.5;
  update[99] = 1.25;
  const std::vector<float> decoded = RoundTrip(Convolution(150), update, {});
  const float scale = static_cast<float>(4.0 / 3);
  std::vector<float> expected(150, 0.0f);
  expected[7] = -scale;
  expected[50] = scale;
  expected[60] = -scale;
  EXPECT_EQ(decoded, expected);
}

// The same 100 numbers are in one bin of 500, or in two of 50.
TEST(AdaComp, HasLongBinsForAllButConvolutions) {
  std::vector<float> update(100, 0.0f);
  update[0] = 1;
  update[99] = 5;
  EXPECT_EQ(RoundTrip(MakeLayout({100}), update, {})[0], 0);
  EXPECT_EQ(RoundTrip(Convolution(100), update, {})[0], 3);
  const Layout matrix = *Layout::Create({{"fc", {10, 10}}});
  EXPECT_EQ(RoundTrip(matrix, update, {})[0], 0);
}

TEST(AdaComp, SendsTheNewestPartBeforeTheOldest) {
  // Equal |G|, but what arrives now counts twice and what is old once.
  EXPECT_THAT(RoundTrip(MakeLayout({3}), {4, 3, 3}, {0, 1, 0}), ElementsAre(4, 4, 0));
}

TEST(AdaComp, SendsNoZeros) {
  EXPECT_THAT(RoundTrip(MakeLayout({3}), {0, -0.0f, 0}, {}), ElementsAre(0, 0, 0));
  EXPECT_THAT(RoundTrip(MakeLayout({3}), {0, 1, 0}, {7, 0, 0}), ElementsAre(0, 1, 0));
}

TEST(AdaComp, KnowsTheWholeRangeOfFloat32) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  EXPECT_THAT(RoundTrip(MakeLayout({2}), {largest, -largest}, {}), ElementsAre(largest, -largest));
  // The mean over two bins is half of the smallest number, and is sent as the smallest.
  std::vector<float> update(100, 0.0f);
  update[3] = smallest;
  EXPECT_EQ(RoundTrip(Convolution(100), update, {})[3], smallest);
}

TEST(AdaComp, GetsTheDeltaFromErrorFeedback) {
  const auto codec = *MakeCodec(SparseSpec("adacomp", 0.01), MakeLayout({3}));
  ErrorFeedback feedback(codec.get());
  std::vector<float> delta = {1, 4, -3};
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, 1));  // H = 2 G: -6 reaches 4
  delta = {0.5, 2, 0};
  // G = {1.5, 2, 1}, H = {2, 4, 1}.
  EXPECT_THAT(Decode(*codec, *feedback.Compress(&delta, {})), ElementsAre(2, 2, 0));
}

TEST(AdaComp, RefusesWhatIsNotFinite) {
  const auto codec = *MakeCodec(SparseSpec("adacomp", 0.01), MakeLayout({2, 2}));
  EXPECT_THAT(codec->Encode({0, 0, 0, std::nanf("")}).status().message(), HasSubstr("'t1', index 1"));
  const std::vector<float> latest = {0, std::numeric_limits<float>::infinity(), 0, 0};
  EncodeOptions options;
  options.latest = latest;
  EXPECT_THAT(codec->Encode({1, 1, 1, 1}, options).status().message(), HasSubstr("'t0', index 1"));
}

}  // namespace
}  // namespace terse
