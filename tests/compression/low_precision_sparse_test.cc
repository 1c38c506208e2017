#include "compression/low_precision_sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> DecodedRound(const Codec& codec, const std::vector<float>& update, uint64_t round) {
  EncodeOptions options;
  options.key = {8, round, 9};
  return Decode(codec, *codec.Encode(update, options));
}

struct Moments {
  std::vector<double> means;
  double square = 0;    // mean of ||b||^2
  double elements = 0;  // mean number of elements
};

Moments Measure(const Codec& codec, const std::vector<float>& update, int keys) {
  Moments moments;
  moments.means.resize(update.size());
  for (int round = 0; round < keys; ++round) {
    const std::vector<float> decoded = DecodedRound(codec, update, round);
    for (size_t i = 0; i < update.size(); ++i) {
      moments.means[i] += decoded[i] / static_cast<double>(keys);
      moments.square += static_cast<double>(decoded[i]) * decoded[i] / keys;
      moments.elements += (decoded[i] != 0 ? 1.0 : 0.0) / keys;
    }
  }
  return moments;
}

// Lemma 2's equality E ||b||^2 = ||a||_1^2 / phi, with the paper's budget and with a smaller one; and E of the number
// of elements is phi. An element is S = ||a||_1 / phi or 0, with a variance of at most S^2 / 4.
TEST(LowPrecisionSparse, IsUnbiasedWithTheVarianceOfLemma2) {
  Random random(41);
  const int64_t size = 40;
  const std::vector<float> update = RandomUpdate(size, &random);
  double norm = 0;
  float largest = 0;
  for (float value : update) {
    norm += std::fabs(value);
    largest = std::max(largest, std::fabs(value));
  }
  constexpr int kKeys = 8000;
  for (double density : {1.0, 0.1}) {
    const double phi = std::min(density * size, norm / largest);
    const double scale = norm / phi;
    const auto codec = NewCodec("low_precision_sparse", density, "fp32", MakeLayout({size}));
    const Moments moments = Measure(*codec, update, kKeys);
    const double error = 5 * scale / 2 / std::sqrt(kKeys);
    for (int64_t i = 0; i < size; ++i) EXPECT_NEAR(moments.means[i], update[i], error) << i;
    EXPECT_NEAR(moments.square, norm * norm / phi, error * scale * std::sqrt(size));
    EXPECT_NEAR(moments.elements, phi, error / scale * std::sqrt(size));
  }
}

// Every kept value is +-||a||_1 / phi, exactly.
TEST(LowPrecisionSparse, SendsOneMagnitude) {
  const std::vector<float> update = {4, -2, 1, 1};  // ||a||_1 = 8, ||a||_inf = 4
  const auto paper = NewCodec("low_precision_sparse", 1, "fp32", MakeLayout({4}));
  const auto less = NewCodec("low_precision_sparse", 0.25, "fp32", MakeLayout({4}));
  for (uint64_t round = 0; round < 50; ++round) {
    const std::vector<float> decoded = DecodedRound(*paper, update, round);
    EXPECT_EQ(decoded[0], 4) << "the largest is always kept";
    for (size_t i = 1; i < 4; ++i) EXPECT_THAT(decoded[i], ::testing::AnyOf(0, std::copysign(4.0f, update[i])));
    const std::vector<float> sparser = DecodedRound(*less, update, round);
    for (size_t i = 0; i < 4; ++i) EXPECT_THAT(sparser[i], ::testing::AnyOf(0, std::copysign(8.0f, update[i])));
  }
}

TEST(LowPrecisionSparse, SendsConstantsExactlyAndNoZeros) {
  const auto codec = NewCodec("low_precision_sparse", 1, "fp32", MakeLayout({3}));
  EXPECT_THAT(DecodedRound(*codec, {-0.3f, -0.3f, -0.3f}, 1), Each(-0.3f));
  EXPECT_THAT(DecodedRound(*codec, {0, -0.0f, 0}, 1), Each(0));
  EXPECT_EQ(*codec->Encode({0, 0, 0}), std::string("\x17\x00", 2));
  EXPECT_THAT(**codec->SentPositions(*codec->Encode({0, 7, 0})), ElementsAre(1));
}

TEST(LowPrecisionSparse, KnowsTheWholeRangeOfFloat32) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  const auto paper = NewCodec("low_precision_sparse", 1, "fp32", MakeLayout({3}));
  EXPECT_THAT(DecodedRound(*paper, {smallest, smallest, -smallest}, 1), ElementsAre(smallest, smallest, -smallest));
  // ||a||_1 / phi would be 300 times the largest number; with that one itself as the scale, all are kept.
  const auto sparse = NewCodec("low_precision_sparse", 0.001, "fp32", MakeLayout({300}));
  EXPECT_THAT(DecodedRound(*sparse, std::vector<float>(300, -largest), 1), Each(-largest));
}

TEST(LowPrecisionSparse, CostsWhatItsHeaderSays) {
  const auto codec = NewCodec("low_precision_sparse", 1, "fp32", MakeLayout({4, 2}));
  // All of the first tensor: a count in three bits, scale, signs, four positions (Rice, b = 0).
  EXPECT_EQ(*codec->CostBits({1, -1, 1, 1, 0, 0}), (3 + 32 + 4 + 4) + 2);
}

TEST(LowPrecisionSparse, RefusesWhatIsNotFiniteAndBudgetsOutOfRange) {
  const Layout layout = MakeLayout({2, 2});
  const auto codec = NewCodec("low_precision_sparse", 1, "fp32", layout);
  EXPECT_THAT(codec->Encode({0, 0, 0, std::nanf("")}).status().message(), HasSubstr("'t1', index 1"));
  for (double density : {0.0, 1.1}) {
    EXPECT_THAT(MakeCodec(SparseSpec("low_precision_sparse", density), layout).status().message(),
                HasSubstr("codec.density"));
  }
}

}  // namespace
}  // namespace terse
