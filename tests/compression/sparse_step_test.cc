#include "compression/sparse_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "compression/bit_stream.h"
#include "compression/prefix_code.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kAnyLength = std::numeric_limits<int64_t>::max();

std::string Written(const std::vector<float>& step) {
  std::string body;
  EXPECT_TRUE(AppendSparseStep(step, kAnyLength, &body));
  return body;
}

absl::Status Read(const std::string& body, std::vector<float>* step) {
  return ReadSparseStep(MakeLayout({static_cast<int64_t>(step->size())}), body, absl::MakeSpan(*step));
}

void ExpectRoundTrip(const std::vector<float>& step) {
  std::vector<float> back(step.size(), 7.0f);
  const absl::Status status = Read(Written(step), &back);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::memcmp(back.data(), step.data(), 4 * step.size()), 0);
}

std::string Refusal(const std::string& body, size_t size) {
  std::vector<float> step(size);
  const absl::Status status = Read(body, &step);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// Values of several kinds, one kind a number.
float ValueOf(int kind, std::mt19937_64* random) {
  const uint32_t draw = static_cast<uint32_t>((*random)());
  switch (kind) {
    case 0:
      return std::normal_distribution<float>(0, 0.01f)(*random);
    case 1:
      return draw % 2 == 0 ? 0.25f : -0.25f;
    case 2:
      return 0.001f * static_cast<float>(1 + draw % 300);
    default: {  // any finite float: -0, subnormal, the largest
      const float value = FloatFromBits(draw % 5 == 0 ? draw & 0x80000003u : draw);
      return std::isfinite(value) ? value : std::numeric_limits<float>::lowest();
    }
  }
}

std::vector<float> RandomStep(int64_t size, double density, int kind, std::mt19937_64* random) {
  std::vector<float> step(size, 0.0f);
  for (float& value : step) {
    if (std::uniform_real_distribution<double>()(*random) < density) value = ValueOf(kind, random);
  }
  return step;
}

TEST(SparseStep, IsReadBackBitForBit) {
  std::mt19937_64 random(1);
  for (const int64_t size : {1, 2, 7, 300, 65535, 65536, 65537, 140000}) {
    for (const double density : {0.0, 0.0003, 0.01, 0.1, 0.3, 0.5, 0.51, 0.7, 0.99, 1.0}) {
      for (int kind = 0; kind < 4; ++kind) ExpectRoundTrip(RandomStep(size, density, kind, &random));
    }
  }
}

TEST(SparseStep, KeepsTheSignOfZero) {
  ExpectRoundTrip({0.0f, -0.0f, 1.0f, 0.0f, -0.0f});
  // The element +0 is left out: a message without any has no symbols, and its blocks no elements.
  EXPECT_EQ(Written({0.0f, 0.0f, 0.0f}).size(), 5);
  EXPECT_GT(Written({0.0f, -0.0f, 0.0f}).size(), 5);
}

TEST(SparseStep, IsAppendedOnlyBelowTheLimit) {
  std::mt19937_64 random(2);
  for (const double density : {0.0, 0.1, 1.0}) {
    for (int kind = 0; kind < 4; ++kind) {
      const std::vector<float> step = RandomStep(70000, density, kind, &random);
      const std::string body = Written(step);
      const int64_t bytes = static_cast<int64_t>(body.size());
      std::string out = "before";
      for (const int64_t limit : {int64_t{0}, bytes / 2, bytes - 1, bytes}) {
        EXPECT_FALSE(AppendSparseStep(step, limit, &out));
        EXPECT_EQ(out, "before");
      }
      EXPECT_TRUE(AppendSparseStep(step, bytes + 1, &out));
      EXPECT_EQ(out, "before" + body);
    }
  }
}

// log2 of n over k.
double ChooseBits(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

// The entropy of the positions, and of the symbols with what follows each.
double EntropyBits(const std::vector<float>& step, int low_bits) {
  std::map<uint32_t, double> counts;
  double listed = 0;
  for (float value : step) {
    if (FloatBits(value) == 0) continue;
    ++counts[FloatBits(value) >> low_bits];
    ++listed;
  }
  double bits = ChooseBits(static_cast<double>(step.size()), listed) + low_bits * listed;
  for (const auto& [symbol, count] : counts) bits += count * std::log2(listed / count);
  return bits;
}

TEST(SparseStep, IsNearItsEntropy) {
  std::mt19937_64 random(3);
  const auto ratio = [&](double density, int kind, int low_bits) {
    const std::vector<float> step = RandomStep(1 << 20, density, kind, &random);
    return 8.0 * static_cast<double>(Written(step).size()) / EntropyBits(step, low_bits);
  };
  for (const double density : {0.001, 0.01, 0.05, 0.2, 0.45, 0.63, 0.9, 0.999, 1.0}) {
    EXPECT_LT(ratio(density, 0, 23), 1.02) << density;
    EXPECT_LT(ratio(density, 1, 0), 1.05) << density;
  }
  EXPECT_LT(ratio(0.2, 2, 0), 1.03);
}

TEST(SparseStep, TakesTheShorterOfOctavesAndValues) {
  std::mt19937_64 random(4);
  const std::vector<float> signs = RandomStep(100000, 1.0, 1, &random);
  EXPECT_LT(Written(signs).size(), 100000 / 8 + 30);  // a bit an element
  const std::vector<float> normal = RandomStep(100000, 1.0, 0, &random);
  EXPECT_LT(Written(normal).size(), 0.85 * 4 * 100000);
}

TEST(SparseStep, RefusesTruncationAndTrailingBytes) {
  std::mt19937_64 random(5);
  for (int kind = 0; kind < 4; ++kind) {
    for (const double density : {0.0, 0.1, 0.8}) {
      const std::vector<float> step = RandomStep(200, density, kind, &random);
      const std::string body = Written(step);
      for (size_t size = 0; size < body.size(); ++size) Refusal(body.substr(0, size), step.size());
      EXPECT_THAT(Refusal(body + std::string(1, '\0'), step.size()), HasSubstr("bits behind"));
    }
  }
}

TEST(SparseStep, GivesFiniteStepsWhateverItReads) {
  std::mt19937_64 random(6);
  for (int kind = 0; kind < 4; ++kind) {
    const std::vector<float> step = RandomStep(300, 0.3, kind, &random);
    const std::string body = Written(step);
    for (size_t at = 0; at < body.size(); ++at) {
      for (int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        std::string broken = body;
        broken[at] = static_cast<char>(broken[at] ^ change);
        std::vector<float> back(step.size());
        const absl::Status status = Read(broken, &back);
        if (!status.ok()) continue;
        EXPECT_TRUE(std::all_of(back.begin(), back.end(), [](float value) { return std::isfinite(value); }));
      }
    }
  }
}

// A body by hand: bits, and how many.
std::string Bits(const std::vector<std::pair<uint32_t, int>>& fields) {
  std::string body;
  BitWriter writer(&body);
  for (const auto& [value, bits] : fields) writer.Put(value, bits);
  writer.Finish();
  return body;
}

TEST(SparseStep, RefusesWhatCannotBe) {
  const uint32_t one = FloatBits(1.0f), two = FloatBits(2.0f);
  std::vector<float> step(1);
  ASSERT_TRUE(Read(Bits({{1, 1}, {1, 15}, {one, 32}, {1, 17}}), &step).ok());
  EXPECT_THAT(step, ElementsAre(1.0f));
  EXPECT_THAT(Refusal(Bits({{1, 1}, {1, 15}, {one, 32}, {2, 17}}), 1), HasSubstr("more elements"));
  EXPECT_THAT(Refusal(Bits({{1, 1}, {0, 15}, {1, 17}}), 1), HasSubstr("more elements"));
  EXPECT_THAT(Refusal(Bits({{1, 1}, {1, 15}, {0, 32}, {1, 17}}), 1), HasSubstr("symbol 0"));
  EXPECT_THAT(Refusal(Bits({{1, 1}, {1, 15}, {0x7f800000u, 32}, {1, 17}}), 1), HasSubstr("symbol 0"));
  EXPECT_THAT(Refusal(Bits({{0, 1}, {1, 15}, {0x1ff, 9}, {1, 17}, {0, 23}}), 1), HasSubstr("symbol 0"));
  EXPECT_THAT(Refusal(Bits({{0, 1}, {1, 15}, {0, 9}, {1, 17}, {0, 23}}), 1), HasSubstr("lists a zero"));
  const auto pair = [&](uint32_t first, uint32_t second, uint32_t length) {
    return Bits({{1, 1}, {2, 15}, {first, 32}, {second, 32}, {1, 4}, {length, 4}, {1, 17}, {0, 1}});
  };
  EXPECT_TRUE(Read(pair(one, two, 1), &step).ok());
  EXPECT_THAT(Refusal(pair(two, one, 1), 1), HasSubstr("symbol 1"));
  EXPECT_THAT(Refusal(pair(one, one, 1), 1), HasSubstr("symbol 1"));
  EXPECT_THAT(Refusal(pair(one, two, 2), 1), HasSubstr("no complete code"));
  EXPECT_THAT(Refusal(pair(one, two, 0), 1), HasSubstr("no complete code"));
  // More symbols than there may be: nothing is made room for.
  EXPECT_THAT(Refusal(Bits({{1, 1}, {kMostPrefixSymbols + 1, 15}}) + std::string(1 << 17, '\0'), 1),
              HasSubstr("ends early"));
}

TEST(PrefixCode, IsHuffmans) {
  EXPECT_THAT(PrefixLengths({5}), ElementsAre(0));
  EXPECT_THAT(PrefixLengths({1, 1000}), ElementsAre(1, 1));
  EXPECT_THAT(PrefixLengths({1, 4, 1, 2}), ElementsAre(3, 1, 3, 2));
  EXPECT_THAT(PrefixLengths({3, 3, 3, 3}), ElementsAre(2, 2, 2, 2));
}

TEST(PrefixCode, HasWordsOfLimitedLength) {
  std::vector<uint64_t> fibonacci = {1, 1};
  while (fibonacci.size() < 60) fibonacci.push_back(fibonacci.end()[-1] + fibonacci.end()[-2]);
  const std::vector<uint64_t> most(kMostPrefixSymbols, 3);
  for (const std::vector<uint64_t>& counts : {fibonacci, most}) {
    const std::vector<uint8_t> lengths = PrefixLengths(counts);
    EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), kMostPrefixBits);
    EXPECT_TRUE(PrefixWords(lengths).ok());
  }
}

TEST(PrefixCode, FindsEveryWordWhateverFollows) {
  std::mt19937_64 random(7);
  for (const size_t symbols : {1, 2, 3, 100, 5000}) {
    std::vector<uint64_t> counts(symbols);
    for (uint64_t& count : counts) count = 1 + random() % 1000;
    const std::vector<PrefixWord> words = *PrefixWords(PrefixLengths(counts));
    const PrefixTable table(words);
    for (size_t i = 0; i < symbols; ++i) {
      const PrefixTable::Entry found = table.Find(words[i].bits | random() << words[i].length);
      ASSERT_EQ(found.symbol, i);
      ASSERT_EQ(found.length, words[i].length);
    }
  }
}

TEST(PrefixCode, RefusesWhatIsNoCompleteCode) {
  EXPECT_TRUE(PrefixWords({1, 2, 2}).ok());
  for (const std::vector<uint8_t>& lengths : std::vector<std::vector<uint8_t>>{
           {}, {1}, {0, 0}, {1, 0}, {1, 2}, {1, 1, 1}, {1, 2, 2, 15}, {1, 16}, std::vector<uint8_t>(16385, 14)}) {
    EXPECT_EQ(PrefixWords(lengths).status().code(), absl::StatusCode::kInvalidArgument) << lengths.size();
  }
}

}  // namespace
}  // namespace terse
