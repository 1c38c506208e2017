#include "compression/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> RoundTrip(double density, const std::vector<float>& values) {
  const auto codec = NewCodec("top_k", density, "fp32", MakeLayout({static_cast<int64_t>(values.size())}));
  return Decode(*codec, *codec->Encode(values));
}

// Selects the elements by sorting all of them.
std::vector<float> NaiveTopK(const std::vector<float>& values, int64_t count) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  std::vector<float> kept(values.size(), 0.0f);
  for (int64_t i = 0; i < count; ++i) kept[order[i]] = values[order[i]];
  return kept;
}

TEST(TopK, KeepsTheLargestOfTheExampleInItsHeader) {
  EXPECT_THAT(RoundTrip(0.3, {0.5, -4, 3, 0, 2.5, 1}), ElementsAre(0, -4, 3, 0, 0, 0));
}

TEST(TopK, BreaksTiesByLowestIndexAndSendsNoZeros) {
  EXPECT_THAT(RoundTrip(0.4, {1, -2, 2, -2, 2}), ElementsAre(0, -2, 2, 0, 0));
  EXPECT_THAT(RoundTrip(1, {0, -2, -0.0f, 3}), ElementsAre(0, -2, 0, 3));
  const auto codec = NewCodec("top_k", 1, "fp32", MakeLayout({4}));
  EXPECT_THAT(**codec->SentPositions(*codec->Encode({0, -2, -0.0f, 3})), ElementsAre(1, 3));
}

TEST(TopK, KeepsTheWholeRangeOfFloat32) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  EXPECT_THAT(RoundTrip(1, {smallest, -largest, -smallest}), ElementsAre(smallest, -largest, -smallest));
}

TEST(TopK, MatchesSorting) {
  Random random(11);
  for (int64_t size : {1, 7, 1000, 30000}) {
    for (double density : {0.001, 0.01, 0.3, 1.0}) {
      std::vector<float> values = RandomUpdate(size, &random);
      EXPECT_EQ(RoundTrip(density, values), NaiveTopK(values, PlannedCount(density, size)))
          << size << " at " << density;
      for (float& value : values) value = std::round(2 * value);
      EXPECT_EQ(RoundTrip(density, values), NaiveTopK(values, PlannedCount(density, size)))
          << size << " at " << density;
    }
  }
}

// The paper's 32 + 16 bits an element; Rice codes take less.
TEST(TopK, SendsThePapers48BitsAnElement) {
  Random random(12);
  const Layout layout = MakeLayout({60000});
  const std::vector<float> update = RandomUpdate(layout.size(), &random);
  CodecSpec spec = SparseSpec("top_k", 0.01, "fp32", "fixed16");
  EXPECT_EQ(*(*MakeCodec(spec, layout))->CostBits(update), 1 + 600 * (32 + 16));
  spec.positions = "rice";
  const int64_t rice = *(*MakeCodec(spec, layout))->CostBits(update);
  EXPECT_LT(rice, 600 * (32 + 8.3));
  EXPECT_GT(rice, 600 * (32 + 8.0));
}

TEST(TopK, IgnoresRatesForItsCountsArePlanned) {
  const auto codec = NewCodec("top_k", 0.25, "fp32", MakeLayout({8}));
  EncodeOptions options;
  const std::vector<double> rates = {1.0};
  options.rates = rates;
  const std::vector<float> update = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(*codec->Encode(update, options), *codec->Encode(update));
}

TEST(TopK, AddsTheResidualInItsOwnPass) {
  const auto codec = NewCodec("top_k", 0.3, "fp32", MakeLayout({3}));
  const std::vector<float> residual = {1, -2, 0.5};
  std::vector<float> delta = {1, 1, -4};
  EXPECT_THAT(Decode(*codec, *codec->AddAndEncode(residual, absl::MakeSpan(delta))), ElementsAre(0, 0, -3.5));
  EXPECT_THAT(delta, ElementsAre(2, -1, -3.5));
  // The error shows the sum.
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> too_large = {0, largest, 0};
  EXPECT_THAT(codec->AddAndEncode({0, largest, 0}, absl::MakeSpan(too_large)).status().message(),
              HasSubstr("'t0', index 1: the update is inf"));
}

TEST(TopK, RefusesValuesThatAreZeroOrNotFinite) {
  const auto codec = NewCodec("top_k", 1, "fp32", MakeLayout({1}));
  const std::string good = *codec->Encode({1.5f});
  const auto with_value = [&](float value) {
    std::string message(1, good[0]);
    BitWriter writer(&message);
    writer.Put(1, 1);  // as planned
    writer.Put(FloatBits(value), 32);
    writer.Put(1, 1);  // the position: no zeros before it
    writer.Finish();
    return message;
  };
  EXPECT_EQ(with_value(1.5f), good);
  for (float bad : {0.0f, -0.0f, std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(codec->Validate(with_value(bad)).message(), HasSubstr("finite and not 0")) << bad;
  }
}

}  // namespace
}  // namespace terse
