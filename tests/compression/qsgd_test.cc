#include "compression/qsgd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compression/elias_omega.h"
#include "compression/exact_math.h"
#include "tests/compression/quantized_testing.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::unique_ptr<const Codec> New(int64_t bits, const std::string& code, const std::vector<int64_t>& sizes,
                                 int64_t bucket = 0) {
  CodecSpec spec;
  spec.name = "qsgd";
  spec.bits = bits;
  spec.code = code;
  spec.bucket = bucket;
  return *QsgdCodec::Create(spec, MakeLayout(sizes));
}

TEST(Qsgd, HasTheBytesOfItsFormat) {
  const std::vector<float> update = {0, 2, 0, 0, -1, 2};
  ExpectExample(*New(2, "simple", {6}), update, "10 00 00 40 40 20 30 02");
  ExpectExample(*New(2, "elias", {6}), update, "11 00 00 40 40 0d 39");
  EXPECT_THAT(RoundTrip(*New(2, "simple", {6}), update), ElementsAre(0, 2, 0, 0, -1, 2));
}

// Section II-B of the report: 32 + n + q * n.
TEST(Qsgd, SimpleCodeCostsWhatTheReportSays) {
  Random random(1);
  for (int64_t bits : {2, 4, 8}) {
    for (int64_t n : {1, 7, 1000}) {
      const std::vector<float> update = RandomUpdate(n, &random);
      const auto codec = New(bits, "simple", {n});
      EXPECT_EQ(*codec->CostBits(update), 32 + n + bits * n);
      EXPECT_EQ(codec->Encode(update)->size(), 1 + (32 + n + bits * n + 7) / 8);
    }
    // Buckets of 300 in a tensor of 1000: four norms.
    EXPECT_EQ(*New(bits, "simple", {1000}, 300)->CostBits(RandomUpdate(1000, &random)), 4 * 32 + 1000 + bits * 1000);
  }
}

TEST(Qsgd, BothCodesCarryTheSameLevels) {
  Random random(2);
  const std::vector<float> update = RandomUpdate(2500, &random);
  for (int64_t bits = 1; bits <= 8; ++bits) {
    for (int64_t bucket : {0, 64, 700}) {
      const auto simple = New(bits, "simple", {1000, 1500}, bucket);
      const auto elias = New(bits, "elias", {1000, 1500}, bucket);
      const std::vector<float> decoded = RoundTrip(*simple, update, 9);
      EXPECT_EQ(decoded, RoundTrip(*elias, update, 9)) << bits;
      const int64_t cost = *elias->CostBits(update, WithKey(9));
      EXPECT_EQ(elias->Encode(update, WithKey(9))->size(), 1 + (cost + 7) / 8);
    }
  }
  // With few levels most are 0, and the Elias code is far shorter.
  EXPECT_LT(5 * *New(2, "elias", {2500})->CostBits(update), *New(2, "simple", {2500})->CostBits(update));
}

TEST(Qsgd, IsUnbiasedWithinTheVarianceOfLemma31) {
  constexpr int kKeys = 3000;
  Random random(3);
  const std::vector<float> update = RandomUpdate(60, &random);
  const double norm = std::sqrt(SquaredNorm(update));
  for (int64_t bits : {1, 2, 4, 8}) {
    const double levels = (1 << bits) - 1;
    const Decoded decoded = OverKeys(*New(bits, "simple", {60}), update, kKeys);
    ExpectUnbiased(decoded, update, norm / levels, kKeys);
    const double expected = RoundingVariance(update, norm / levels);
    EXPECT_NEAR(decoded.squared_error, expected, 0.05 * expected) << bits;
    EXPECT_LE(decoded.squared_error, std::min(60 / (levels * levels), std::sqrt(60) / levels) * norm * norm) << bits;
  }
}

TEST(Qsgd, DrawsByKeyTensorAndIndex) {
  Random random(4);
  const std::vector<float> update = RandomUpdate(200, &random);
  const auto codec = New(2, "simple", {100, 100});
  const std::string message = *codec->Encode(update, WithKey(1, 2, 3));
  EXPECT_EQ(*codec->Encode(update, WithKey(1, 2, 3)), message);
  for (const EncodeOptions& other : {WithKey(2, 2, 3), WithKey(1, 3, 3), WithKey(1, 2, 4)}) {
    EXPECT_NE(*codec->Encode(update, other), message);
  }
  std::vector<float> twice = update;
  std::copy(update.begin(), update.begin() + 100, twice.begin() + 100);
  const std::vector<float> decoded = RoundTrip(*codec, twice);
  EXPECT_FALSE(std::equal(decoded.begin(), decoded.begin() + 100, decoded.begin() + 100));
}

TEST(Qsgd, RoundsTheNormUp) {
  // ||(1, 1)|| is between two floats; the upper one is sent.
  const std::string message = *New(8, "simple", {2})->Encode(std::vector<float>{1, 1});
  const float norm = FloatFromBits(LoadLittle32(message.data() + 1));
  EXPECT_GE(static_cast<double>(norm), std::sqrt(2.0));
  EXPECT_LT(static_cast<double>(std::nextafter(norm, 0.0f)), std::sqrt(2.0));
}

TEST(Qsgd, KeepsZerosAndSingleElements) {
  for (const char* code : {"simple", "elias"}) {
    EXPECT_THAT(RoundTrip(*New(4, code, {5}), std::vector<float>(5, -0.0f)), Each(0.0f));
    for (float value : {1.0f, -0.3f, 0x1p-149f, -kLargestFloat}) {
      EXPECT_THAT(RoundTrip(*New(3, code, {1}), {value}), ElementsAre(value));
    }
  }
}

TEST(Qsgd, StaysFiniteAndUnbiasedBeyondTheRangeOfTheNorm) {
  constexpr int kKeys = 2000;
  const std::vector<float> update = {kLargestFloat, -kLargestFloat, kLargestFloat / 2, 0};
  const auto codec = New(1, "simple", {4});
  ASSERT_EQ(FloatFromBits(LoadLittle32(codec->Encode(update)->data() + 1)), kLargestFloat);
  const Decoded decoded = OverKeys(*codec, update, kKeys);
  EXPECT_EQ(decoded.mean[3], 0);
  EXPECT_NEAR(decoded.mean[0] / kLargestFloat, 1, 1e-9);
  EXPECT_NEAR(decoded.mean[1] / kLargestFloat, -1, 1e-9);
  EXPECT_NEAR(decoded.mean[2] / kLargestFloat, 0.5, 6 * 0.5 / std::sqrt(kKeys));
}

TEST(Qsgd, RefusesWhatItDoesNotWrite) {
  const auto simple = New(2, "simple", {6});
  ExpectRefused(*simple, FromHex("10 00 00 40 40 21 30 02"), "never writes");     // a negative zero
  ExpectRefused(*simple, FromHex("10 00 00 00 00 20 30 02"), "does not fit");     // norm 0, levels above 0
  ExpectRefused(*simple, FromHex("10 00 00 00 80 00 00 00"), "header");           // norm -0
  ExpectRefused(*simple, FromHex("10 00 00 80 bf 00 00 00"), "header");           // norm -1
  ExpectRefused(*simple, FromHex("10 00 00 80 7f 00 00 00"), "header");           // infinite
  ExpectRefused(*simple, FromHex("10 00 00 40 40 20 30 06"), "behind its last");  // padding
  ExpectRefused(*simple, FromHex("10 00 00 40 40 20 30"), "ends inside");
  ExpectRefused(*simple, FromHex("11 00 00 40 40 0d 39"), "not a message of codec qsgd");
  const auto elias = New(2, "elias", {6});
  // The sparse code of the example, 100 0 100 110 1 0 0 0 100, is two bits longer than the dense one.
  ExpectRefused(*elias, FromHex("11 00 00 40 40 22 8b 00"), "longer one");
  ExpectRefused(*elias, FromHex("11 00 00 00 00 0d 39"), "does not fit");
}

TEST(Qsgd, RefusesSettingsItDoesNotHave) {
  CodecSpec spec;
  spec.name = "qsgd";
  const Layout layout = MakeLayout({3});
  for (int64_t bits : {0, 9, -1}) {
    spec.bits = bits;
    EXPECT_EQ(QsgdCodec::Create(spec, layout).status().code(), absl::StatusCode::kInvalidArgument);
  }
  spec.bits = 4;
  spec.code = "huffman";
  EXPECT_EQ(QsgdCodec::Create(spec, layout).status().code(), absl::StatusCode::kInvalidArgument);
  spec.code = "elias";
  spec.bucket = -1;
  EXPECT_EQ(QsgdCodec::Create(spec, layout).status().code(), absl::StatusCode::kInvalidArgument);
  spec.bucket = 0;
  EXPECT_TRUE(QsgdCodec::Create(spec, layout).ok());
}

}  // namespace
}  // namespace terse
