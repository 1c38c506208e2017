#include "compression/top_select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compression/bit_stream.h"
#include "compression/simd.h"
#include "core/random.h"

namespace terse {
namespace {

enum class Which { kPositive, kNegative, kLargest };

bool Belongs(Which which, float value) {
  if (value == 0) return false;
  return which == Which::kLargest || (which == Which::kPositive) == (value > 0);
}

// The entries of a selection, by value.
struct Entries {
  std::vector<uint32_t> indices;
  std::vector<uint32_t> value_bits;
  double sum = 0;
};

// The definition: sorted by magnitude, stable, so that ties stay in the order of their indices.
Entries Plain(const std::vector<float>& numbers, int64_t count, Which which) {
  std::vector<uint32_t> order;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (Belongs(which, numbers[i])) order.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return std::fabs(numbers[a]) > std::fabs(numbers[b]); });
  order.resize(std::min<size_t>(order.size(), static_cast<size_t>(count)));
  std::sort(order.begin(), order.end());
  Entries selection;
  selection.indices = order;
  std::vector<double> partial(8);
  for (size_t j = 0; j < order.size(); ++j) {
    selection.value_bits.push_back(FloatBits(numbers[order[j]]));
    partial[j % 8] += std::fabs(static_cast<double>(numbers[order[j]]));
  }
  for (double part : partial) selection.sum += part;
  return selection;
}

std::vector<uint32_t> Bits(absl::Span<const float> values) {
  std::vector<uint32_t> bits;
  for (float value : values) bits.push_back(FloatBits(value));
  return bits;
}

Entries Copy(const TopEntries& entries) {
  return {{entries.indices.begin(), entries.indices.end()}, Bits(entries.values), entries.sum};
}

void ExpectSame(const TopEntries& got, const Entries& wanted) {
  ASSERT_EQ(got.indices, absl::MakeConstSpan(wanted.indices));
  ASSERT_EQ(Bits(got.values), wanted.value_bits);
  ASSERT_EQ(got.sum, wanted.sum);
}

void ExpectTailsAndLargest(TopSelector* selector, const std::vector<float>& numbers, int64_t count) {
  SCOPED_TRACE(testing::Message() << count << " of " << numbers.size());
  ASSERT_FALSE(selector->SelectTails({numbers}, count).has_value());
  ExpectSame(selector->positive(), Plain(numbers, count, Which::kPositive));
  ExpectSame(selector->negative(), Plain(numbers, count, Which::kNegative));
  ASSERT_FALSE(selector->SelectLargest({numbers}, count).has_value());
  ExpectSame(selector->largest(), Plain(numbers, count, Which::kLargest));
  TopSelector both;
  ASSERT_FALSE(both.SelectTailsAndLargest({numbers}, count).has_value());
  ExpectSame(both.positive(), Copy(selector->positive()));
  ExpectSame(both.negative(), Copy(selector->negative()));
  ExpectSame(both.largest(), Copy(selector->largest()));
}

float Normal(Random* random) {
  const double radius = std::sqrt(-2 * std::log(1 - random->Uniform()));
  return static_cast<float>(radius * std::cos(2 * 3.141592653589793 * random->Uniform()));
}

std::vector<float> Normals(int64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = Normal(&random);
  return values;
}

std::vector<float> Filled(int64_t size, const std::function<float(int64_t)>& value) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = value(i);
  return values;
}

struct Numbers {
  std::string name;
  std::vector<float> values;
};

// Tensors that a sample, a histogram or a comparison of floats may trip over.
std::vector<Numbers> Adversaries(int64_t n) {
  const float least = std::numeric_limits<float>::denorm_min();
  const float most = std::numeric_limits<float>::max();
  const auto scaled = [n](int64_t i) { return static_cast<float>(i - n / 2) / static_cast<float>(n); };
  std::vector<Numbers> cases = {
      {"ascending", Filled(n, scaled)},
      {"descending", Filled(n, [=](int64_t i) { return scaled(n - 1 - i); })},
      {"ascending magnitudes", Filled(n, [=](int64_t i) { return (i % 2 == 0 ? 1.0f : -1.0f) * scaled(i + n / 2); })},
      {"zeros", Filled(n, [](int64_t i) { return i % 3 == 0 ? -0.0f : 0.0f; })},
      {"constant", Filled(n, [](int64_t) { return 0.25f; })},
      {"negative constant", Filled(n, [](int64_t) { return -3.0f; })},
      {"two values", Filled(n, [](int64_t i) { return (i * 7919) % 5 < 2 ? 1.0f : 2.0f; })},
      {"two signs", Filled(n, [](int64_t i) { return (i * 7919) % 5 < 2 ? 1.0f : -1.0f; })},
      {"few values", Filled(n, [](int64_t i) { return static_cast<float>((i * 7919) % 9 - 4); })},
      {"largest and smallest",
       Filled(n, [=](int64_t i) { return (i % 2 == 0 ? most : least) * (i % 3 == 0 ? -1 : 1); })},
      {"denormals", Filled(n, [=](int64_t i) { return least * static_cast<float>((i * 7919) % 1001 - 500); })},
      {"one", Filled(n, [=](int64_t i) { return i == 2 * n / 3 ? -1e-30f : 0.0f; })},
      {"large at the end", Filled(n, [=](int64_t i) { return i > n - n / 50 ? 5.0f : 1e-3f * scaled(i); })},
      {"large at the start", Filled(n, [=](int64_t i) { return i < n / 50 ? 5.0f : 1e-3f * scaled(i); })},
  };
  // Large only where a stride does or does not look: every odd stride up to some hundreds.
  for (const int64_t period : {2, 3, 17, 63, 64, 65, 67, 97, 101, 255, 257}) {
    for (const int64_t place : {int64_t{0}, period / 2, period - 1}) {
      const std::string name = "period " + std::to_string(period) + " at " + std::to_string(place);
      cases.push_back({name, Filled(n, [=](int64_t i) { return (i % period == place ? 9.0f : 0.5f) * scaled(i); })});
      cases.push_back({name + ", few", Filled(n, [=](int64_t i) { return i % period == place ? 1e-5f : scaled(i); })});
    }
  }
  return cases;
}

class TopSelectorOnEveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(UseSimdTarget("").ok()); }
};

INSTANTIATE_TEST_SUITE_P(Targets, TopSelectorOnEveryTarget, testing::ValuesIn(SimdTargets()),
                         [](const auto& info) { return info.param; });

TEST_P(TopSelectorOnEveryTarget, SelectsFromSmallTensors) {
  TopSelector selector;
  for (int64_t n = 1; n <= 300; ++n) {
    const std::vector<float> numbers = Normals(n, n);
    for (const int64_t count : {int64_t{1}, int64_t{2}, n / 3 + 1, n, n + 5}) {
      ExpectTailsAndLargest(&selector, numbers, count);
    }
  }
}

TEST_P(TopSelectorOnEveryTarget, SelectsFromLargeTensors) {
  TopSelector selector;
  for (const int64_t n : {4095, 4096, 4097, 10000, 65536, 300001}) {
    const std::vector<float> numbers = Normals(n, n);
    for (const int64_t count : {int64_t{1}, n / 1000 + 1, n / 100, n / 10, n / 3, n / 2, n - 1, n}) {
      ExpectTailsAndLargest(&selector, numbers, count);
    }
  }
}

TEST_P(TopSelectorOnEveryTarget, SelectsFromAdversaries) {
  TopSelector selector;
  for (const int64_t n : {257, 5000, 20011}) {
    for (const Numbers& numbers : Adversaries(n)) {
      SCOPED_TRACE(numbers.name);
      for (const int64_t count : {int64_t{1}, n / 100 + 1, n / 4}) {
        ExpectTailsAndLargest(&selector, numbers.values, count);
      }
    }
  }
}

TEST_P(TopSelectorOnEveryTarget, BreaksTiesToTheLowestIndex) {
  TopSelector selector;
  std::vector<float> numbers(100, 1.0f);
  numbers[70] = 2;
  ASSERT_FALSE(selector.SelectTails({numbers}, 4).has_value());
  EXPECT_EQ(selector.positive().indices, (std::vector<uint32_t>{0, 1, 2, 70}));
  EXPECT_TRUE(selector.negative().indices.empty());
  EXPECT_EQ(selector.positive().sum, 5);
}

TEST_P(TopSelectorOnEveryTarget, KeepsSignsOfTheLargest) {
  TopSelector selector;
  ASSERT_FALSE(selector.SelectLargest({std::vector<float>{1, -4, 0, 3, -2}}, 3).has_value());
  EXPECT_EQ(selector.largest().indices, (std::vector<uint32_t>{1, 3, 4}));
  EXPECT_EQ(selector.largest().values, (std::vector<float>{-4, 3, -2}));
  EXPECT_EQ(selector.largest().sum, 9);
}

TEST_P(TopSelectorOnEveryTarget, AddsTheResidualOnce) {
  TopSelector selector;
  for (const int64_t n : {1, 7, 300, 5000, 100003}) {
    const std::vector<float> residual = Normals(n, 1);
    for (std::vector<float> values : {Normals(n, 2), Adversaries(n).back().values}) {
      std::vector<float> sums(n);
      for (int64_t i = 0; i < n; ++i) sums[i] = values[i] + residual[i];
      const int64_t count = n / 100 + 1;
      const Entries positive = Plain(sums, count, Which::kPositive);
      const Entries negative = Plain(sums, count, Which::kNegative);
      std::vector<float> separate(n, 99.0f);
      const std::vector<float> before = values;
      ASSERT_FALSE(selector.SelectTails({values, residual.data(), separate.data()}, count).has_value());
      EXPECT_EQ(values, before);
      EXPECT_EQ(Bits(separate), Bits(sums));
      ExpectSame(selector.positive(), positive);
      ExpectSame(selector.negative(), negative);
      std::vector<float> also_residual = residual;
      ASSERT_FALSE(selector.SelectTails({values, also_residual.data(), also_residual.data()}, count).has_value());
      EXPECT_EQ(Bits(also_residual), Bits(sums));
      ExpectSame(selector.positive(), positive);
      ASSERT_FALSE(selector.SelectLargest({values, residual.data(), values.data()}, count).has_value());
      EXPECT_EQ(Bits(values), Bits(sums));
      ExpectSame(selector.largest(), Plain(sums, count, Which::kLargest));
    }
  }
}

// A sum that a second pass would add to again.
TEST_P(TopSelectorOnEveryTarget, DoesNotAddTwiceWhenTheSampleMisled) {
  const int64_t n = 20000;
  TopSelector selector;
  for (int64_t period = 3; period < 400; period += 2) {
    std::vector<float> values(n), residual(n, 1.0f);
    for (int64_t i = 0; i < n; ++i) values[i] = i % period == period / 2 ? 6.0f : 1e-3f;
    std::vector<float> sums(n);
    for (int64_t i = 0; i < n; ++i) sums[i] = values[i] + residual[i];
    ASSERT_FALSE(selector.SelectTails({values, residual.data(), values.data()}, n / 100).has_value());
    ASSERT_EQ(Bits(values), Bits(sums)) << period;
    ExpectSame(selector.positive(), Plain(sums, n / 100, Which::kPositive));
  }
}

TEST_P(TopSelectorOnEveryTarget, FindsTheFirstNumberThatIsNotFinite) {
  TopSelector selector;
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> numbers = Normals(9000, 3);
  for (int64_t at = 0; at < 9000; at += at < 4200 ? 1 : 41) {
    const float bad = std::vector<float>{inf, -inf, nan, -nan}[at % 4];
    const float kept = std::exchange(numbers[at], bad);
    const float last = std::exchange(numbers.back(), nan);
    ASSERT_EQ(selector.SelectTails({numbers}, 90), at);
    ASSERT_EQ(selector.SelectLargest({numbers}, 90), at);
    ASSERT_EQ(selector.SelectTails({absl::MakeConstSpan(numbers).subspan(at / 2, at - at / 2 + 1)}, 3), at - at / 2);
    numbers.back() = last;
    numbers[at] = kept;
  }
  EXPECT_FALSE(selector.SelectTails({numbers}, 90).has_value());
}

TEST_P(TopSelectorOnEveryTarget, FindsASumThatIsNotFinite) {
  TopSelector selector;
  const float most = std::numeric_limits<float>::max();
  std::vector<float> values = Normals(20000, 4), residual = Normals(20000, 5);
  values[12345] = -most;
  residual[12345] = -most;
  EXPECT_EQ(selector.SelectTails({values, residual.data(), values.data()}, 5), 12345);
}

TEST_P(TopSelectorOnEveryTarget, GivesTheSameForManyTensorsAsForEachAlone) {
  TopSelector used;
  for (const int64_t n : {500, 400000, 20, 25000, 1, 50000, 10}) {
    TopSelector fresh;
    const std::vector<float> numbers = Normals(n, n + 1);
    const int64_t count = n / 100 + 1;
    ASSERT_FALSE(used.SelectTails({numbers}, count).has_value());
    ASSERT_FALSE(fresh.SelectTails({numbers}, count).has_value());
    ExpectSame(used.positive(), Copy(fresh.positive()));
    ExpectSame(used.negative(), Copy(fresh.negative()));
  }
}

// Whatever the numbers, the buffers have no room for much more than was asked for.
TEST(TopSelector, TakesLittleMemory) {
  const int64_t n = 1000000;
  const int64_t count = n / 100;
  for (const Numbers& numbers : Adversaries(n)) {
    TopSelector selector;
    ASSERT_FALSE(selector.SelectTails({numbers.values}, count).has_value());
    EXPECT_LE(selector.room(), 2 * 2 * count) << numbers.name;
  }
}

}  // namespace
}  // namespace terse
