#include "compression/mcgq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "compression/counter_random.h"
#include "compression/sparse_codec.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Spec(double samples, const std::string& code) {
  CodecSpec spec = SparseSpec("mcgq", 0.01);
  spec.samples = samples;
  spec.code = code;
  return spec;
}

SparseLevels LevelsOf(const std::vector<int>& dense) {
  SparseLevels levels;
  for (size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] == 0) continue;
    levels.positions.push_back(static_cast<uint32_t>(i));
    levels.levels.push_back(SignedLevel(std::abs(dense[i]), dense[i] < 0));
  }
  return levels;
}

std::vector<int> DenseOf(const SparseLevels& levels, size_t size) {
  std::vector<int> dense(size, 0);
  for (size_t i = 0; i < levels.positions.size(); ++i) {
    const int magnitude = static_cast<int>(levels.levels[i] >> 1);
    dense[levels.positions[i]] = (levels.levels[i] & 1) == 1 ? -magnitude : magnitude;
  }
  return dense;
}

std::string Rle(const std::vector<int>& dense) {
  std::string bytes;
  BitWriter writer(&bytes);
  PutRle(LevelsOf(dense), static_cast<int64_t>(dense.size()), &writer);
  writer.Finish();
  return bytes;
}

// The levels of a tensor of `size` elements, read `step` at a time.
absl::StatusOr<std::vector<int>> ReadRle(const std::string& bytes, int64_t size, int64_t step) {
  RleReader reader;
  absl::Status status = reader.Start(size, BitReader(bytes));
  SparseLevels all;
  std::vector<uint32_t> positions(step), levels(step);
  for (int64_t count = 1; status.ok() && count > 0;) {
    status = reader.Next(absl::MakeSpan(positions), absl::MakeSpan(levels), &count);
    all.positions.insert(all.positions.end(), positions.begin(), positions.begin() + count);
    all.levels.insert(all.levels.end(), levels.begin(), levels.begin() + count);
  }
  if (!status.ok()) return status;
  return DenseOf(all, size);
}

// Section 3.4's example: 32 + 32 + 22 bits, token by token.
TEST(McgqRle, WritesThePapersExampleIn86Bits) {
  const std::vector<int> paper = {2, -1, 0, 0, 0, 3, 0, 1};
  EXPECT_EQ(RleBits(LevelsOf(paper), 8), 86);
  std::string bytes;
  BitWriter writer(&bytes);
  const std::pair<uint64_t, int> fields[] = {{3, 32}, {2, 32},           // B_g, B_RLE
                                             {2, 3},  {7, 3},            // 2, -1
                                             {0, 3},  {3, 2},            // three zeros
                                             {3, 3},                     // 3
                                             {0, 3},  {1, 2},  {1, 3}};  // one zero, 1
  for (const auto& field : fields) writer.Put(field.first, field.second);
  writer.Finish();
  EXPECT_EQ(Rle(paper), bytes);
  EXPECT_EQ(*ReadRle(bytes, 8, 100), paper);
}

TEST(McgqRle, HasTheWidthsOfItsEnds) {
  EXPECT_EQ(RleBits(LevelsOf({0, 0, 0, 0, 0}), 5), 64 + 1 + 3);  // B_g = 1
  EXPECT_EQ(RleBits(LevelsOf({4, -1}), 2), 64 + 2 * 4);          // B_RLE = 0
  EXPECT_EQ(RleBits(LevelsOf({0}), 1), 64 + 1 + 1);
  const SparseLevels largest = {{0}, {SignedLevel(kMostLevel, true)}};
  EXPECT_EQ(RleBits(largest, 1), 64 + 32);
}

TEST(McgqRle, ReadsWhatItWroteInPiecesOfAnySize) {
  Random random(21);
  for (int64_t size : {1, 2, 9, 300}) {
    for (int range : {1, 2, 3, 100}) {
      std::vector<int> dense(size);
      for (int& level : dense) level = random.Below(3) == 0 ? static_cast<int>(random.Below(2 * range)) - range : 0;
      const std::string bytes = Rle(dense);
      EXPECT_EQ((RleBits(LevelsOf(dense), size) + 7) / 8, bytes.size());
      for (int64_t step : {1, 2, 1000}) EXPECT_EQ(*ReadRle(bytes, size, step), dense) << size << " " << range;
      for (size_t end = 0; end < bytes.size(); ++end) EXPECT_FALSE(ReadRle(bytes.substr(0, end), size, 1000).ok());
    }
  }
}

TEST(McgqRle, RefusesWhatItDoesNotWrite) {
  const auto reason = [](int64_t size, const std::vector<std::pair<uint64_t, int>>& fields) {
    std::string bytes;
    BitWriter writer(&bytes);
    for (const auto& field : fields) writer.Put(field.first, field.second);
    writer.Finish();
    return std::string(ReadRle(bytes, size, 10).status().message());
  };
  EXPECT_EQ(reason(2, {{2, 32}, {1, 32}, {1, 2}, {0, 2}, {1, 1}}), "");
  EXPECT_THAT(reason(2, {{0, 32}, {1, 32}}), HasSubstr("widths of 0 and 1"));
  EXPECT_THAT(reason(2, {{33, 32}, {1, 32}}), HasSubstr("widths of 33 and 1"));
  EXPECT_THAT(reason(2, {{2, 32}, {3, 32}}), HasSubstr("widths of 2 and 3"));
  EXPECT_THAT(reason(2, {{3, 32}, {1, 32}, {1, 3}, {0, 3}, {1, 1}}), HasSubstr("where 2 and 1 are enough"));
  EXPECT_THAT(reason(2, {{2, 32}, {2, 32}, {1, 2}, {0, 2}, {1, 2}}), HasSubstr("where 2 and 1 are enough"));
  EXPECT_THAT(reason(1, {{2, 32}, {1, 32}, {1, 2}}), HasSubstr("where 2 and 0 are enough"));
  EXPECT_THAT(reason(2, {{2, 32}, {1, 32}, {2, 2}, {0, 2}, {1, 1}}), HasSubstr("width does not hold"));  // -2
  EXPECT_THAT(reason(2, {{2, 32}, {1, 32}, {1, 2}, {0, 2}, {0, 1}}), HasSubstr("a run of 0 zeros at 1"));
  EXPECT_THAT(reason(3, {{2, 32}, {1, 32}, {1, 2}, {0, 2}, {1, 1}, {0, 2}, {1, 1}}),
              HasSubstr("a run of 1 zeros at 2"));
  EXPECT_THAT(reason(2, {{2, 32}, {2, 32}, {1, 2}, {0, 2}, {2, 2}}), HasSubstr("a run of 2 zeros at 1"));
}

SparseLevels LevelsOf(const std::vector<float>& values, int64_t count, double xi) {
  SparseLevels levels;
  SampleLevels(values, count, xi, SampleNorm(values), &levels);
  return levels;
}

TEST(Mcgq, TakesTheSamplesOfTheExampleInItsHeader) {
  EXPECT_EQ(SampleNorm({1, 0, -2, 1}), 4);
  EXPECT_THAT(DenseOf(LevelsOf({1, 0, -2, 1}, SampleCount(1, 4), 0.5), 4), ElementsAre(1, 0, -2, 1));
}

// Algorithm 1 as it stands, on integers: sample i hits element k where C_{k-1} <= (xi + i) / N * C < C_k. With xi = x /
// 64 everything is exact.
std::vector<int> LiteralLoop(const std::vector<float>& values, int64_t count, int64_t x) {
  int64_t total = 0;
  for (float value : values) total += static_cast<int64_t>(std::fabs(value));
  std::vector<int> levels(values.size(), 0);
  size_t hit = 0;
  int64_t sum = static_cast<int64_t>(std::fabs(values[0]));
  for (int64_t i = 0; i < count; ++i) {
    while ((x + 64 * i) * total >= 64 * count * sum) sum += static_cast<int64_t>(std::fabs(values[++hit]));
    levels[hit] += values[hit] < 0 ? -1 : 1;
  }
  return levels;
}

TEST(Mcgq, TheClosedFormIsAlgorithm1) {
  Random random(22);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<float> values(1 + random.Below(40));
    for (float& value : values) value = static_cast<float>(static_cast<int>(random.Below(41)) - 20);
    values[random.Below(values.size())] = 64;
    // Totals and numbers of samples that divide each other put samples on the borders of intervals.
    const int64_t count = 1 + static_cast<int64_t>(random.Below(100));
    const int64_t x = static_cast<int64_t>(random.Below(64));
    const SparseLevels levels = LevelsOf(values, count, static_cast<double>(x) / 64);
    // Where N * C_k is a multiple of ||g||_1, and so on a border, the quotient of doubles is exact as well.
    ASSERT_EQ(DenseOf(levels, values.size()), LiteralLoop(values, count, x)) << trial;
  }
}

TEST(Mcgq, LevelsSumToN) {
  Random random(23);
  for (double samples : {0.001, 0.05, 1.0, 7.3, 1024.0}) {
    for (int64_t size : {1, 3, 1000}) {
      const std::vector<float> values = RandomUpdate(size, &random, 1e-30);
      for (double xi : {0.0, 0.5, 1 - 0x1p-32}) {
        const int64_t count = SampleCount(samples, size);
        const SparseLevels levels = LevelsOf(values, count, xi);
        int64_t sum = 0;
        for (uint32_t level : levels.levels) sum += level >> 1;
        EXPECT_EQ(sum, count) << size << " " << samples << " " << xi;
      }
    }
  }
  // Here N * ||g||_1 / ||g||_1 may round to less than N, and the last sample lies that close to the end.
  for (int trial = 0; trial < 2000; ++trial) {
    const std::vector<float> values = RandomUpdate(2, &random);
    const SparseLevels levels = LevelsOf(values, kMostLevel, 1 - 0x1p-32);
    EXPECT_EQ(int64_t{levels.levels[0] >> 1} + (levels.levels.size() > 1 ? levels.levels[1] >> 1 : 0), kMostLevel);
  }
  EXPECT_EQ(SampleCount(0.05, 100), 5);
  EXPECT_EQ(SampleCount(0.051, 100), 6);
  EXPECT_EQ(SampleCount(1e-9, 100), 1);
  EXPECT_EQ(SampleCount(1024, 2147483647), kMostLevel);
}

// 4,000 keys: the mean of 4,000 levels, each with a variance of at most 1/4, is within 5 standard errors of the truth.
TEST(Mcgq, IsUnbiased) {
  Random random(24);
  const std::vector<float> update = RandomUpdate(50, &random);
  const double norm = std::accumulate(update.begin(), update.end(), 0.0,
                                      [](double sum, float value) { return sum + std::fabs(value); });
  constexpr int kKeys = 4000;
  for (const char* code : {"simple", "positions"}) {
    const auto codec = *MakeCodec(Spec(0.2, code), MakeLayout({50}));
    std::vector<double> sums(50, 0.0), squares(50, 0.0);
    for (uint64_t round = 0; round < kKeys; ++round) {
      EncodeOptions options;
      options.key = {5, round, 6};
      const std::vector<float> decoded = Decode(*codec, *codec->Encode(update, options));
      for (int i = 0; i < 50; ++i) {
        sums[i] += decoded[i];
        squares[i] += (decoded[i] - update[i]) * (decoded[i] - update[i]);
      }
    }
    const double scale = norm / 10;  // N = 10
    for (int i = 0; i < 50; ++i) {
      EXPECT_NEAR(sums[i] / kKeys, update[i], 5 * scale / 2 / std::sqrt(kKeys)) << i;
      EXPECT_LT(squares[i] / kKeys, 1.1 * scale * scale / 4) << i;
    }
  }
}

TEST(Mcgq, ObeysRates) {
  const auto codec = *MakeCodec(Spec(0.5, "positions"), MakeLayout({4, 4}));
  const std::vector<float> update = {1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<double> rates = {1, 2};
  EncodeOptions options;
  options.rates = rates;
  EXPECT_EQ(Decode(*codec, *codec->Encode(update, options)), update);
  EXPECT_THAT(**codec->SentPositions(*codec->Encode(update)), ::testing::SizeIs(4));
  for (double rate : {-1.0, 1025.0, std::nan("")}) {
    const std::vector<double> bad = {1, rate};
    options.rates = bad;
    EXPECT_THAT(codec->Encode(update, options).status().message(), HasSubstr("'t1': a rate of"));
  }
}

TEST(Mcgq, DecodesFiniteNumbersEverywhere) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  for (const char* code : {"simple", "positions"}) {
    const auto one = *MakeCodec(Spec(3, code), MakeLayout({1}));
    // A third of the smallest is sent as the smallest; three thirds of the largest stay finite.
    EXPECT_THAT(Decode(*one, *one->Encode({-smallest})), ElementsAre(-3 * smallest));
    const std::vector<float> huge = Decode(*one, *one->Encode({-largest}));
    EXPECT_TRUE(std::isfinite(huge[0]));
    EXPECT_LE(huge[0], -0.9999999f * largest);
    const auto few = *MakeCodec(Spec(0.01, code), MakeLayout({100}));
    const std::vector<float> sampled = Decode(*few, *few->Encode(std::vector<float>(100, largest)));
    EXPECT_EQ(std::accumulate(sampled.begin(), sampled.end(), 0.0), largest);
    const auto zeros = *MakeCodec(Spec(0.5, code), MakeLayout({3}));
    EXPECT_THAT(Decode(*zeros, *zeros->Encode({0, -0.0f, 0})), ElementsAre(0, 0, 0));
  }
}

TEST(Mcgq, CostsWhatItsHeaderSays) {
  const std::vector<float> update = {1, 0, -2, 1, 0, 0, 0, 0};
  // The levels of N = 4 samples are 1, -2, 1, whatever xi is.
  const auto simple = *MakeCodec(Spec(0.5, "simple"), MakeLayout({4, 4}));
  std::vector<double> rates = {1, 1};
  EncodeOptions options;
  options.rates = rates;
  EXPECT_EQ(*simple->CostBits(update, options), (96 + 3 * 3 + 3 + 1) + (96 + 1 + 3));
  // A count in three bits, the scale, gamma codes of 1, 2, 1 with signs; three of four positions in Rice codes (b = 0).
  const auto sparse = *MakeCodec(Spec(0.5, "positions"), MakeLayout({4, 4}));
  EXPECT_EQ(*sparse->CostBits(update, options), (3 + 32 + 2 + 4 + 2 + 4) + 3);
}

TEST(Mcgq, RefusesBrokenScales) {
  const auto codec = *MakeCodec(Spec(1, "simple"), MakeLayout({1}));
  const auto reason = [&](float scale, uint32_t level) {
    std::string message(1, '\x0c');
    BitWriter writer(&message);
    writer.Put(FloatBits(scale), 32);
    writer.Put(level == 0 ? 1 : 2, 32);
    writer.Put(level == 0 ? 1 : 0, 32);
    writer.Put(level, level == 0 ? 1 : 2);
    if (level == 0) writer.Put(1, 1);
    writer.Finish();
    return std::string(codec->Validate(message).message());
  };
  EXPECT_EQ(reason(1.5f, 1), "");
  EXPECT_EQ(reason(0, 0), "");
  EXPECT_THAT(reason(1.5f, 0), HasSubstr("scale must be 0 exactly where"));
  EXPECT_THAT(reason(0, 1), HasSubstr("scale must be 0 exactly where"));
  EXPECT_THAT(reason(-0.0f, 0), HasSubstr("its scale is -0"));
  EXPECT_THAT(reason(-1, 1), HasSubstr("its scale is -1"));
  EXPECT_THAT(reason(std::numeric_limits<float>::infinity(), 1), HasSubstr("its scale is inf"));
}

TEST(Mcgq, RefusesLevelsTooLarge) {
  const auto codec = *MakeCodec(Spec(1, "positions"), MakeLayout({1}));
  const auto valid = [&](int log) {
    std::string message(1, '\x0c');
    BitWriter writer(&message);
    writer.Put(1, 1);
    writer.Put(FloatBits(1), 32);
    writer.PutUnary(log);
    writer.Put(0, log);
    writer.Put(1, 1);
    writer.Put(1, 1);  // the position
    writer.Finish();
    return codec->Validate(message);
  };
  EXPECT_TRUE(valid(30).ok());
  EXPECT_THAT(valid(31).message(), HasSubstr("2^31 scales"));
}

TEST(Mcgq, RefusesSettingsOutOfRange) {
  const Layout layout = MakeLayout({4});
  for (double samples : {0.0, -1.0, 1025.0, std::nan("")}) {
    EXPECT_THAT(MakeCodec(Spec(samples, "simple"), layout).status().message(), HasSubstr("codec.samples"));
  }
  EXPECT_THAT(MakeCodec(Spec(1, "elias"), layout).status().message(), HasSubstr("codec.code"));
}

}  // namespace
}  // namespace terse
