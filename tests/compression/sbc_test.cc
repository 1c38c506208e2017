#include "compression/sbc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compression/bit_stream.h"
#include "compression/rice.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Algorithm 2 on one tensor by sorting everything, with the readings of sbc.h.
std::vector<float> NaiveSbc(const std::vector<float>& values, double density) {
  const size_t k = std::max<int64_t>(1, std::llround(density * static_cast<double>(values.size())));
  double sums[2];
  std::vector<size_t> kept[2];
  for (int side = 0; side < 2; ++side) {
    const float sign = side == 0 ? 1.0f : -1.0f;
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return sign * values[a] > sign * values[b]; });
    order.resize(std::min(k, order.size()));
    std::sort(order.begin(), order.end());
    for (size_t i : order) {
      if (sign * values[i] > 0) kept[side].push_back(i);
    }
    // Eight partial sums, as top_select.h defines them.
    double partial[8] = {};
    for (size_t j = 0; j < kept[side].size(); ++j) partial[j % 8] += static_cast<double>(sign * values[kept[side][j]]);
    sums[side] = 0;
    for (double sum : partial) sums[side] += sum;
  }
  const int side = sums[0] >= sums[1] ? 0 : 1;
  std::vector<float> result(values.size());
  for (size_t i : kept[side]) {
    result[i] = (side == 0 ? 1.0f : -1.0f) * static_cast<float>(sums[side] / static_cast<double>(kept[side].size()));
  }
  return result;
}

std::vector<float> RoundTrip(double density, const std::string& precision, const std::vector<float>& values) {
  const auto codec = NewCodec("sbc", density, precision, MakeLayout({static_cast<int64_t>(values.size())}));
  return Decode(*codec, *codec->Encode(values));
}

TEST(Sbc, KeepsOneSideOfTheExampleInItsHeader) {
  EXPECT_THAT(RoundTrip(0.3, "fp32", {0.5, -4, 3, 0, 2.5, 1}), ElementsAre(0, 0, 2.75, 0, 2.75, 0));
}

TEST(Sbc, BreaksTiesByLowestIndexAndTheTieOfSidesToThePositive) {
  EXPECT_THAT(RoundTrip(0.4, "fp32", {1, 2, 2, 2, 2}), ElementsAre(0, 2, 2, 0, 0));
  EXPECT_THAT(RoundTrip(0.4, "fp32", {-1, -2, -2, 2, 2}), ElementsAre(0, 0, 0, 2, 2));
}

TEST(Sbc, KeepsOnlyTheEntriesOfTheChosenSign) {
  // k = 3: the means over three entries are 10 / 3 and 1, so 10 is sent alone, unspoiled by the zeros.
  EXPECT_THAT(RoundTrip(0.5, "fp32", {-1, 10, -1, 0, -1, 0}), ElementsAre(0, 10, 0, 0, 0, 0));
  // One entry of 10 is less than three of 9.
  EXPECT_THAT(RoundTrip(0.5, "fp32", {-9, 10, -9, 0, -9, 0}), ElementsAre(-9, 0, -9, 0, -9, 0));
}

TEST(Sbc, RoundsThePlannedCountToNearest) {
  const std::vector<float> ones(100, 1.0f);
  const auto sent = [&ones](double density) {
    const std::vector<float> values = RoundTrip(density, "fp32", ones);
    return 100 - std::count(values.begin(), values.end(), 0.0f);
  };
  EXPECT_EQ(sent(0.29), 29);   // 0.29 * 100 is 28.999999999999996 in double
  EXPECT_EQ(sent(0.285), 28);  // 28.499999999999996
  EXPECT_EQ(sent(0.125), 13);
  EXPECT_EQ(sent(0.001), 1);
}

TEST(Sbc, EqualCountsAreThoseOfTheLargestTensor) {
  const Layout layout = Layout::Create({{"small", {3}}, {"large", {100}}, {"middle", {30}}}).value();
  CodecSpec spec;
  spec.density = 0.1;
  spec.counts = "equal";
  EXPECT_THAT(PlannedCounts(spec, layout), ElementsAre(3, 10, 10));
  spec.counts = "proportional";
  EXPECT_THAT(PlannedCounts(spec, layout), ElementsAre(1, 10, 3));
  spec.counts = "evenly";
  EXPECT_THAT(MakeCodec(spec, layout).status().message(), HasSubstr("there are 'proportional' and 'equal'"));
}

TEST(Sbc, MatchesTheNaiveAlgorithm2) {
  Random random(3);
  for (int64_t size : {1, 2, 15, 16, 17, 100, 4095, 4096, 4097, 30000, 200000}) {
    for (double density : {0.0001, 0.001, 0.01, 0.1, 0.5, 1.0}) {
      std::vector<float> values = RandomUpdate(size, &random);
      EXPECT_EQ(RoundTrip(density, "fp32", values), NaiveSbc(values, density)) << size << " at " << density;
      for (float& value : values) value = std::round(2 * value);  // many ties and zeros
      EXPECT_EQ(RoundTrip(density, "fp32", values), NaiveSbc(values, density)) << size << " ties at " << density;
    }
  }
}

// A strided sample of these tensors says nothing or something false about their tails.
TEST(Sbc, MatchesTheNaiveAlgorithm2WhereTheSampleMisleads) {
  Random random(4);
  const int64_t size = 100000;
  std::vector<std::vector<float>> tensors(4, std::vector<float>(size, 0.0f));
  tensors[0][77] = -3;                                                // the sample sees zeros only
  for (int64_t i = 0; i < 1000; ++i) tensors[1][500 + i] = 1.0f + i;  // one dense cluster
  // Large values on all elements that a stride of 17 visits, and at a few more places.
  for (int64_t i = 8; i < size; i += 17) tensors[2][i] = static_cast<float>(random.Uniform(1, 2));
  for (int64_t i = 0; i < size; i += 1001) tensors[2][i] = -5;
  for (float& value : tensors[3]) value = 1.0f;  // every element ties
  for (std::vector<float>& tensor : tensors) {
    for (double density : {0.001, 0.001, 0.01, 0.01, 0.3, 0.3}) {
      EXPECT_EQ(RoundTrip(density, "fp32", tensor), NaiveSbc(tensor, density)) << density;
      for (float& value : tensor) value = -value;
    }
  }
}

TEST(Sbc, FindsNotFiniteValuesAnywhere) {
  Random random(5);
  const Layout layout = MakeLayout({5, 20000});
  const auto codec = NewCodec("sbc", 0.001, "fp32", layout);
  const std::vector<float> update = RandomUpdate(layout.size(), &random);
  for (float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity()}) {
    for (int64_t at : {5, 11, 4321, 20004}) {
      std::vector<float> broken = update;
      broken[at] = bad;
      broken[20004] = bad;
      const auto message = codec->Encode(broken);
      ASSERT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(message.status().message(), HasSubstr(absl::StrCat("tensor 't1', index ", at - 5, ":")));
    }
  }
}

TEST(Sbc, RoundsMeansToBfloat16WithoutZeroOrInfinity) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  EXPECT_THAT(RoundTrip(1, "bf16", {1.00390625f}), ElementsAre(1.0f));       // halfway, to even
  EXPECT_THAT(RoundTrip(1, "bf16", {1.01171875f}), ElementsAre(1.015625f));  // halfway, to even
  EXPECT_THAT(RoundTrip(1, "bf16", {-1.00390637f}), ElementsAre(-1.0078125f));
  EXPECT_THAT(RoundTrip(1, "bf16", {smallest}), ElementsAre(std::ldexp(1.0f, -133)));
  EXPECT_THAT(RoundTrip(1, "bf16", {-largest}), ElementsAre(FloatFromBits(0xff7f0000)));
  EXPECT_THAT(RoundTrip(1, "fp32", {smallest, smallest}), ElementsAre(smallest, smallest));
  EXPECT_THAT(RoundTrip(1, "fp32", {largest, largest}), ElementsAre(largest, largest));
}

TEST(Sbc, WholeLeNet5MessageStaysSmall) {
  Random random(6);
  const Layout layout = MakeLayout(LeNet5Sizes());
  const std::vector<float> update = RandomUpdate(layout.size(), &random);
  const auto size = [&](double density, const char* precision) {
    return static_cast<int>(NewCodec("sbc", density, precision, layout)->Encode(update)->size());
  };
  EXPECT_NEAR(size(0.001, "fp32"), 655, 10);
  EXPECT_NEAR(size(0.001, "bf16"), 639, 10);
  EXPECT_NEAR(size(0.01, "fp32"), 4400, 25);
}

TEST(Sbc, RefusesParametersOutOfRange) {
  const Layout layout = MakeLayout({4});
  for (double density : {0.0, -0.1, 1.0000001, std::nan("")}) {
    EXPECT_THAT(MakeCodec(SparseSpec("sbc", density), layout).status().message(), HasSubstr("codec.density"));
  }
  EXPECT_THAT(MakeCodec(SparseSpec("sbc", 0.1, "fp16"), layout).status().message(), HasSubstr("codec.mean_precision"));
}

TEST(Stc, KeepsBothSides) {
  const auto codec = NewCodec("stc", 0.3, "fp32", MakeLayout({6}));
  EXPECT_THAT(Decode(*codec, *codec->Encode({0.5, -4, 3, 0, 2.5, 1})), ElementsAre(0, -3.5, 3.5, 0, 0, 0));
  EXPECT_THAT(Decode(*codec, *codec->Encode({0, 0, 0, 0, 0, -7})), ElementsAre(0, 0, 0, 0, 0, -7));
}

TEST(SbcOrStc, TakesTheOneWithMoreEnergyForItsBits) {
  const auto codec = NewCodec("sbc_or_stc", 0.3, "fp32", MakeLayout({6}));
  // Both keep 9 + 9, and stc pays for two signs.
  EXPECT_THAT(Decode(*codec, *codec->Encode({0, 3, 0, 3, 0, 1})), ElementsAre(0, 3, 0, 3, 0, 0));
  // One side alone has one entry: half the energy for nearly as many bits.
  EXPECT_THAT(Decode(*codec, *codec->Encode({0, 4, 0, -4, 0, 0})), ElementsAre(0, 4, 0, -4, 0, 0));
}

// Two sides carry more energy a bit on Gaussian tensors, and one side on tensors whose tails end early.
TEST(SbcOrStc, KeepsAsMuchEnergyPerBitAsTheBetterOne) {
  Random random(8);
  const Layout layout = MakeLayout({20000});
  std::vector<float> gaussian(layout.size());
  for (float& value : gaussian) {
    const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
    value = static_cast<float>(radius * std::cos(2 * M_PI * random.Uniform()));
  }
  std::vector<float> uniform(layout.size());
  for (float& value : uniform) value = static_cast<float>(random.Uniform(-1, 1));
  const auto energy_per_bit = [&](const char* name, const std::vector<float>& update) {
    const auto codec = NewCodec(name, 0.01, "fp32", layout);
    double energy = 0;
    for (float value : Decode(*codec, *codec->Encode(update))) energy += static_cast<double>(value) * value;
    return energy / static_cast<double>(*codec->CostBits(update));
  };
  EXPECT_GT(energy_per_bit("stc", gaussian), 1.03 * energy_per_bit("sbc", gaussian));
  EXPECT_NEAR(energy_per_bit("sbc_or_stc", gaussian) / energy_per_bit("stc", gaussian), 1, 0.002);
  EXPECT_GT(energy_per_bit("sbc", uniform), 1.05 * energy_per_bit("stc", uniform));
  EXPECT_NEAR(energy_per_bit("sbc_or_stc", uniform) / energy_per_bit("sbc", uniform), 1, 0.002);
}

// Bytes that no encoder makes, each one bit or field away from the worked example of FORMAT.md.
TEST(Sbc, RefusesWhatEncodeDoesNotMake) {
  const auto codec = NewCodec("sbc", 0.3, "fp32", MakeLayout({6, 3}));
  const auto reason = [&codec](const std::string& message) { return std::string(codec->Validate(message).message()); };
  const std::string good("\x04\x02\x00\xc0\x00\x69", 6);
  EXPECT_EQ(reason(good), "");
  EXPECT_THAT(reason(""), HasSubstr("format 4"));
  EXPECT_THAT(reason("\x05" + good.substr(1)), HasSubstr("format 4"));
  EXPECT_THAT(reason(good.substr(0, 1)), HasSubstr("header"));
  EXPECT_THAT(reason(good.substr(0, 4)), HasSubstr("'t0'"));
  EXPECT_THAT(reason(good + std::string(1, '\0')), HasSubstr("behind its last element"));
  EXPECT_THAT(reason(good + std::string(100, '\0')), HasSubstr("at most"));
  EXPECT_THAT(reason(std::string("\x04\x02\x00\x00\xfe\x69", 6)), HasSubstr("scale is inf"));
  EXPECT_THAT(reason(std::string("\x04\x02\x00\x00\x00\x68", 6)), HasSubstr("scale is 0"));
  EXPECT_THAT(reason(std::string("\x04\x02\x00\xc0\x00\x09", 6)), HasSubstr("'t0'"));
}

// The flag and the counts of a message of one tensor of six, k' = 3.
TEST(Sbc, RefusesCountsThatHaveAShorterForm) {
  const auto codec = NewCodec("sbc", 0.5, "fp32", MakeLayout({6}));
  const auto reason = [&codec](bool all_planned, bool as_planned, uint32_t count) {
    std::string message(1, '\x04');
    BitWriter writer(&message);
    writer.Put(all_planned, 1);
    if (!all_planned) writer.Put(as_planned, 1);
    if (!as_planned) writer.Put(count, 2);
    writer.Put(FloatBits(1.0f), 32);
    const std::vector<uint32_t> first = {0, 1, 2};
    RiceCoder().Put(absl::MakeSpan(first).subspan(0, as_planned ? 3 : count), 6, &writer);
    writer.Finish();
    return std::string(codec->Validate(message).message());
  };
  EXPECT_EQ(reason(true, true, 0), "");
  EXPECT_EQ(reason(false, false, 2), "");
  EXPECT_THAT(reason(false, true, 0), HasSubstr("corrects no count"));
  // Two bits hold 0 to 2, and 3 would be a second way to say "as planned".
  EXPECT_THAT(reason(false, false, 3), HasSubstr("count of 3"));
}

}  // namespace
}  // namespace terse
