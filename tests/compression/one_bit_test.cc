#include "compression/one_bit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/exact_math.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(const std::vector<int64_t>& sizes, int64_t bucket = 0) {
  CodecSpec spec;
  spec.name = "one_bit";
  spec.bucket = bucket;
  return *OneBitCodec::Create(spec, MakeLayout(sizes));
}

TEST(OneBit, HasTheBytesOfItsFormat) {
  ExpectExample(*New({5}), {1, -2, 3, 0.5, 1.5}, "13 00 00 c0 3f 00 00 00 c0 02");
}

TEST(OneBit, SendsTheMeanOfEachSide) {
  EXPECT_THAT(RoundTrip(*New({4}), {1, -2, 3, 0}), ElementsAre(4 / 3.0f, -2, 4 / 3.0f, 4 / 3.0f));
  EXPECT_THAT(RoundTrip(*New({4}), {-1, -0.0f, -3, -2}), ElementsAre(-2, 0, -2, -2));
  // No other pair of values for the two sides has a smaller squared error.
  Random random(1);
  const std::vector<float> update = RandomUpdate(100, &random);
  const std::vector<float> decoded = RoundTrip(*New({100}), update);
  double upper_error = 0, lower_error = 0;
  for (size_t i = 0; i < update.size(); ++i) (update[i] < 0 ? lower_error : upper_error) += update[i] - decoded[i];
  EXPECT_NEAR(upper_error, 0, 1e-5);
  EXPECT_NEAR(lower_error, 0, 1e-5);
}

TEST(OneBit, CostsTwoFloatsABucketAndABitAnElement) {
  Random random(2);
  EXPECT_EQ(*New({1000})->CostBits(RandomUpdate(1000, &random)), 64 + 1000);
  EXPECT_EQ(*New({1000}, 300)->CostBits(RandomUpdate(1000, &random)), 4 * 64 + 1000);
}

TEST(OneBit, HasMeansOfItsOwnInEveryBucket) {
  EXPECT_THAT(RoundTrip(*New({5}, 2), {1, 3, -1, -5, 7}), ElementsAre(2, 2, -3, -3, 7));
}

TEST(OneBit, IsExactForOneValueASide) {
  EXPECT_THAT(RoundTrip(*New({4}), {0.1f, -0.7f, 0.1f, -0.7f}), ElementsAre(0.1f, -0.7f, 0.1f, -0.7f));
  EXPECT_THAT(RoundTrip(*New({3}), {-0x1p-149f, 0, 0}), ElementsAre(-0x1p-149f, 0, 0));
  EXPECT_THAT(RoundTrip(*New({700}), std::vector<float>(700, kLargestFloat)), Each(kLargestFloat));
  EXPECT_THAT(RoundTrip(*New({700}), std::vector<float>(700, -kLargestFloat)), Each(-kLargestFloat));
  EXPECT_THAT(RoundTrip(*New({7}), std::vector<float>(7, 0.0f)), Each(0.0f));
}

TEST(OneBit, RefusesWhatItDoesNotWrite) {
  const auto codec = New({5});
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 c0 00"), "does not fit");  // no negative element
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 00 02"), "does not fit");  // no mean for one
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 c0 1f"), "does not fit");  // a mean for none
  ExpectRefused(*codec, FromHex("13 00 00 c0 bf 00 00 00 c0 02"), "header");
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 40 02"), "header");
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 80 00"), "header");
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 80 ff 02"), "header");
  ExpectRefused(*codec, FromHex("13 00 00 c0 3f 00 00 00 c0 22"), "behind its last");
  EXPECT_TRUE(codec->Validate(FromHex("13 00 00 00 00 00 00 00 c0 1f")).ok());
}

}  // namespace
}  // namespace terse
