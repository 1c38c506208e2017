#include "compression/terngrad.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/base_three.h"
#include "compression/exact_math.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(double clip, const std::vector<int64_t>& sizes, int64_t bucket = 0) {
  CodecSpec spec;
  spec.name = "terngrad";
  spec.clip = clip;
  spec.bucket = bucket;
  return *TernGradCodec::Create(spec, MakeLayout(sizes));
}

TEST(TernGrad, HasTheBytesOfItsFormat) { ExpectExample(*New(0, {6}), {1, -1, 0, 1, 1, -1}, "12 00 00 80 3f 73 02"); }

TEST(TernGrad, CostsAByteForFiveElements) {
  Random random(1);
  for (int64_t n : {1, 4, 5, 6, 479, 480, 481, 1000}) {
    const std::vector<float> update = RandomUpdate(n, &random);
    EXPECT_EQ(*New(0, {n})->CostBits(update), 32 + 8 * ((n + 4) / 5));
    EXPECT_EQ(New(0, {n})->Encode(update)->size(), 5 + (n + 4) / 5);
  }
  EXPECT_EQ(*New(0, {13}, 6)->CostBits(RandomUpdate(13, &random)), 3 * 32 + 8 * (2 + 2 + 1));
}

TEST(TernGrad, KeepsAnElementInProportionToItsMagnitude) {
  constexpr int kKeys = 3000;
  Random random(2);
  const std::vector<float> update = RandomUpdate(60, &random);
  const double scale = LargestMagnitude(update);
  const Decoded decoded = OverKeys(*New(0, {60}), update, kKeys);
  ExpectUnbiased(decoded, update, scale, kKeys);
  const double expected = RoundingVariance(update, scale);
  EXPECT_NEAR(decoded.squared_error, expected, 0.05 * expected);
  for (float value : RoundTrip(*New(0, {60}), update)) {
    EXPECT_TRUE(value == 0 || std::abs(value) == static_cast<float>(scale)) << value;
  }
}

TEST(TernGrad, ClipsAtStandardDeviations) {
  // sqrt((99 * 1 + 901) / 100) = sqrt(10); 2.5 of it is 7.906.
  std::vector<float> update(100, 1.0f);
  update[40] = -std::sqrt(901.0f);
  const float cut = static_cast<float>(2.5 * std::sqrt(10.0));
  const Decoded decoded = OverKeys(*New(2.5, {100}), update, 2000);
  EXPECT_NEAR(decoded.mean[40], -cut, 1e-5);
  for (size_t i : {0, 39, 41, 99}) EXPECT_NEAR(decoded.mean[i], 1, 6 * cut / 2 / std::sqrt(2000)) << i;
  EXPECT_FALSE(New(2.5, {100})->traits().unbiased);
  EXPECT_TRUE(New(0, {100})->traits().unbiased);
}

TEST(TernGrad, DoesNotClipConstantsOrSingleElementsAway) {
  EXPECT_THAT(RoundTrip(*New(2.5, {4}), {3, 3, 3, 3}), Each(3.0f));
  EXPECT_THAT(RoundTrip(*New(2.5, {1}), {-0.7f}), ElementsAre(-0.7f));
  // The cut itself is below the smallest number, and is that number then.
  EXPECT_THAT(RoundTrip(*New(1e-10, {2}), {-0x1p-149f, -0x1p-149f}), Each(-0x1p-149f));
}

TEST(TernGrad, KeepsZerosAndTheEndsOfTheRange) {
  EXPECT_THAT(RoundTrip(*New(2.5, {7}), std::vector<float>(7, -0.0f)), Each(0.0f));
  EXPECT_THAT(RoundTrip(*New(0, {2}), {0x1p-149f, -0x1p-149f}), ElementsAre(0x1p-149f, -0x1p-149f));
  EXPECT_THAT(RoundTrip(*New(1e300, {2}), {kLargestFloat, -kLargestFloat}), ElementsAre(kLargestFloat, -kLargestFloat));
}

TEST(TernGrad, DrawsByKey) {
  Random random(3);
  const std::vector<float> update = RandomUpdate(100, &random);
  const auto codec = New(0, {100});
  EXPECT_EQ(*codec->Encode(update, WithKey(1)), *codec->Encode(update, WithKey(1)));
  EXPECT_NE(*codec->Encode(update, WithKey(1)), *codec->Encode(update, WithKey(2)));
}

TEST(TernGrad, RefusesWhatItDoesNotWrite) {
  const auto codec = New(0, {6});
  ExpectRefused(*codec, FromHex("12 00 00 80 3f f3 02"), "above 22222");
  ExpectRefused(*codec, FromHex("12 00 00 80 3f 73 03"), "behind the last");
  ExpectRefused(*codec, FromHex("12 00 00 80 3f 00 00"), "does not fit");
  ExpectRefused(*codec, FromHex("12 00 00 00 00 73 02"), "does not fit");
  ExpectRefused(*codec, FromHex("12 00 00 80 bf 73 02"), "header");
  ExpectRefused(*codec, FromHex("12 00 00 80 3f 73"), "ends inside");
}

TEST(TernGrad, RefusesSettingsItDoesNotHave) {
  CodecSpec spec;
  spec.name = "terngrad";
  for (double clip : {-1.0, std::nan(""), HUGE_VAL}) {
    spec.clip = clip;
    EXPECT_EQ(TernGradCodec::Create(spec, MakeLayout({3})).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(BaseThree, PacksAndUnpacksEveryFiveDigits) {
  const auto coder = NewBaseThreeCoder();
  for (int field = 0; field < 243; ++field) {
    std::vector<uint32_t> digits;
    for (int rest = field, i = 0; i < 5; ++i, rest /= 3) digits.push_back(rest % 3);
    std::string bytes;
    BitWriter writer(&bytes);
    coder->Put(digits, &writer);
    writer.Finish();
    EXPECT_EQ(bytes, std::string(1, static_cast<char>(field)));
    BitReader stream{absl::string_view(bytes)};
    std::vector<uint32_t> decoded(5);
    ASSERT_TRUE(coder->NewReader()->Next(absl::MakeSpan(decoded), &stream).ok());
    EXPECT_EQ(decoded, digits);
  }
}

}  // namespace
}  // namespace terse
