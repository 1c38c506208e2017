#include "compression/low_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/exact_math.h"
#include "compression/quantize_kernels.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(int64_t bits, const std::vector<int64_t>& sizes, int64_t bucket = 0) {
  CodecSpec spec;
  spec.name = "low_precision";
  spec.bits = bits;
  spec.bucket = bucket;
  return *LowPrecisionCodec::Create(spec, MakeLayout(sizes));
}

// The level of one number.
int32_t Level(float x, float delta, int bits, uint32_t draw) {
  uint32_t symbol = 0;
  GetQuantizeKernels().to_low_precision(&x, &draw, 1, delta, bits, &symbol);
  const uint32_t sign = uint32_t{1} << (bits - 1);
  return static_cast<int32_t>(symbol ^ sign) - static_cast<int32_t>(sign);
}

TEST(LowPrecisionLevel, RoundsByChanceInsideTheHull) {
  const uint32_t half = 0x80000000u;
  EXPECT_EQ(Level(2.5f, 1, 4, half - 1), 3);
  EXPECT_EQ(Level(2.5f, 1, 4, half), 2);
  EXPECT_EQ(Level(-2.5f, 1, 4, half - 1), -2);
  EXPECT_EQ(Level(-2.5f, 1, 4, half), -3);
  EXPECT_EQ(Level(-2.25f, 1, 4, 0xbfffffffu), -2);
  EXPECT_EQ(Level(-2.25f, 1, 4, 0xc0000000u), -3);
  for (uint32_t draw : {0u, half, 0xffffffffu}) {
    EXPECT_EQ(Level(7, 1, 4, draw), 7);
    EXPECT_EQ(Level(-7, 1, 4, draw), -7);
    EXPECT_EQ(Level(-0.0f, 1, 4, draw), 0);
    EXPECT_EQ(Level(0, 0, 4, draw), 0);
  }
}

// The reciprocal of 49 is not a double, and 49 times what is nearest to it is less than 1.
TEST(LowPrecisionLevel, LeavesNothingToChanceWhereThereIsNone) {
  ASSERT_NE(1.0 / 49 * 49, 1);
  for (uint32_t draw : {0u, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(Level(49, 49, 2, draw), 1);
    EXPECT_EQ(Level(-49, 49, 2, draw), -1);
  }
}

TEST(LowPrecisionLevel, TakesTheLargestLevelJustOutsideTheHull) {
  for (uint32_t draw : {0u, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(Level(7.0001f, 1, 4, draw), 7);
    EXPECT_EQ(Level(-7.0001f, 1, 4, draw), -7);
  }
}

TEST(LowPrecisionLoss, IsTheExpectedSquaredError) {
  // delta = 1: {1, -7, 0.5, 2.25} lie 0, 0, 1/2 and 1/4 above a number of the domain.
  EXPECT_DOUBLE_EQ(LowPrecisionLoss({1, -7, 0.5, 2.25}, 4), 0.25 + 3.0 / 16);
  EXPECT_DOUBLE_EQ(LowPrecisionLoss({2, -14, 1, 4.5}, 4), 4 * (0.25 + 3.0 / 16));
  EXPECT_EQ(LowPrecisionLoss({0, 0}, 4), 0);
  EXPECT_EQ(LowPrecisionLoss({}, 4), 0);
  // The mean over many keys agrees.
  Random random(3);
  std::vector<float> values(200);
  for (float& value : values) value = static_cast<float>(random.Uniform(-1, 1));
  const auto codec = New(5, {200});
  double sum = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    EncodeOptions options;
    options.key = {1, round, 2};
    std::vector<float> error = values;
    ASSERT_EQ(codec->AddDecoded(*codec->Encode(values, options), -1, absl::MakeSpan(error)), absl::OkStatus());
    for (const float one : error) sum += static_cast<double>(one) * one;
  }
  EXPECT_NEAR(sum / 400 / LowPrecisionLoss(values, 5), 1, 0.02);
}

TEST(LowPrecisionDelta, PutsTheLargestMagnitudeIntoTheHull) {
  EXPECT_EQ(LowPrecisionDelta(7, 4), 1);
  EXPECT_EQ(LowPrecisionDelta(0, 4), 0);
  EXPECT_EQ(LowPrecisionDelta(3.5f, 2), 3.5f);
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const float largest = FloatFromBits(static_cast<uint32_t>(1 + random.Below(kInfinityBits - 1)));
    const int bits = 2 + static_cast<int>(random.Below(15));
    const double most = (1 << (bits - 1)) - 1;
    const float delta = LowPrecisionDelta(largest, bits);
    EXPECT_LE(delta, largest);
    EXPECT_GE(most * delta, largest);
    EXPECT_LT(most * std::nextafter(delta, 0.0f), largest);
    EXPECT_TRUE(std::isfinite(LowPrecisionValue(static_cast<int32_t>(most), delta)));
  }
  for (int bits = 2; bits <= 16; ++bits) {
    const int32_t most = (1 << (bits - 1)) - 1;
    const float delta = LowPrecisionDelta(kLargestFloat, bits);
    EXPECT_TRUE(std::isfinite(LowPrecisionValue(most, delta))) << bits;
    EXPECT_NEAR(LowPrecisionValue(most, delta) / kLargestFloat, 1, 1e-6) << bits;
  }
}

TEST(LowPrecision, HasTheBytesOfItsFormat) {
  ExpectExample(*New(4, {4}), {1, -7, 0, 3}, "16 00 00 80 3f 91 30");
  EXPECT_THAT(RoundTrip(*New(4, {4}), {1, -7, 0, 3}), ElementsAre(1, -7, 0, 3));
}

// Section 3: 32 + b * d.
TEST(LowPrecision, CostsWhatThePaperSays) {
  Random random(2);
  for (int64_t bits = 2; bits <= 16; ++bits) {
    const std::vector<float> update = RandomUpdate(777, &random);
    EXPECT_EQ(*New(bits, {777})->CostBits(update), 32 + bits * 777);
    EXPECT_EQ(New(bits, {777})->Encode(update)->size(), 1 + (32 + bits * 777 + 7) / 8);
  }
}

TEST(LowPrecision, IsUnbiasedWithinAQuarterOfDeltaSquared) {
  constexpr int kKeys = 3000;
  Random random(3);
  const std::vector<float> update = RandomUpdate(60, &random);
  for (int64_t bits : {2, 4, 8, 16}) {
    const double delta = LowPrecisionDelta(LargestMagnitude(update), static_cast<int>(bits));
    const Decoded decoded = OverKeys(*New(bits, {60}), update, kKeys);
    // Sixteen bits come near the precision of the decoded float32s.
    ExpectUnbiased(decoded, update, delta + 1e-6, kKeys);
    const double expected = RoundingVariance(update, delta);
    EXPECT_NEAR(decoded.squared_error, expected, 0.05 * expected) << bits;
    EXPECT_LE(decoded.squared_error, 60 * delta * delta / 4) << bits;
  }
}

TEST(LowPrecision, KeepsZerosSingleElementsAndTheEndsOfTheRange) {
  EXPECT_THAT(RoundTrip(*New(4, {5}), std::vector<float>(5, -0.0f)), Each(0.0f));
  EXPECT_THAT(RoundTrip(*New(2, {1}), {-0.3f}), ElementsAre(-0.3f));
  EXPECT_THAT(RoundTrip(*New(8, {2}), {-0x1p-149f, 0x1p-149f}), ElementsAre(-0x1p-149f, 0x1p-149f));
  for (int64_t bits = 2; bits <= 16; ++bits) {
    // Where delta had to be smaller, rounding a few of these down would overflow.
    for (float end : {kLargestFloat, -kLargestFloat}) {
      const std::vector<float> values = RoundTrip(*New(bits, {20000}), std::vector<float>(20000, end));
      ASSERT_EQ(values.size(), 20000) << bits;
      for (float value : values) ASSERT_NEAR(value / end, 1, 1e-6) << bits;
    }
  }
}

TEST(LowPrecision, DrawsByKey) {
  Random random(4);
  const std::vector<float> update = RandomUpdate(100, &random);
  const auto codec = New(4, {100});
  EXPECT_EQ(*codec->Encode(update, WithKey(1)), *codec->Encode(update, WithKey(1)));
  EXPECT_NE(*codec->Encode(update, WithKey(1)), *codec->Encode(update, WithKey(2)));
}

TEST(LowPrecision, RefusesWhatItDoesNotWrite) {
  const auto codec = New(4, {4});
  ExpectRefused(*codec, FromHex("16 00 00 80 3f 91 38"), "never writes");  // -8
  ExpectRefused(*codec, FromHex("16 00 00 80 3f 00 00"), "does not fit");
  ExpectRefused(*codec, FromHex("16 00 00 00 00 91 30"), "does not fit");
  ExpectRefused(*codec, FromHex("16 00 00 80 bf 91 30"), "header");
  ExpectRefused(*codec, FromHex("16 ff ff 7f 7f 91 30"), "header");  // seven times that is infinite
  ExpectRefused(*codec, FromHex("16 00 00 80 3f 91"), "ends inside");
}

TEST(LowPrecision, RefusesSettingsItDoesNotHave) {
  CodecSpec spec;
  spec.name = "low_precision";
  for (int64_t bits : {0, 1, 17}) {
    spec.bits = bits;
    EXPECT_EQ(LowPrecisionCodec::Create(spec, MakeLayout({3})).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace terse
