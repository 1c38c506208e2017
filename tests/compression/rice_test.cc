#include "compression/rice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "compression/simd.h"
#include "core/random.h"

namespace terse {
namespace {

// Equation (5) as it is printed, in the widest floating point.
int PaperParameter(int64_t count, int64_t size) {
  if (count == size) return 0;
  const long double phi = (std::sqrt(5.0L) + 1) / 2;
  const long double p = static_cast<long double>(count) / size;
  return std::max(0, 1 + static_cast<int>(std::floor(std::log2(std::log(phi - 1) / std::log1p(-p)))));
}

// Equation (5)'s mean bits of a position at density p, with the parameter b.
double PaperBits(double p, int b) { return b + 1 / (1 - std::pow(1 - p, std::exp2(b))); }

// Algorithm 3, bit by bit, for 0-based positions.
std::vector<bool> PaperEncode(const std::vector<uint32_t>& positions, int b) {
  std::vector<bool> bits;
  int64_t previous = -1;
  for (int64_t position : positions) {
    const int64_t d = position - previous;
    for (int64_t q = (d - 1) >> b; q > 0; --q) bits.push_back(true);
    bits.push_back(false);
    const int64_t r = (d - 1) & ((int64_t{1} << b) - 1);
    for (int i = b - 1; i >= 0; --i) bits.push_back((r >> i & 1) != 0);
    previous = position;
  }
  return bits;
}

// Algorithm 4, bit by bit; its j is 1-based.
std::vector<uint32_t> PaperDecode(const std::vector<bool>& bits, int b) {
  std::vector<uint32_t> positions;
  int64_t j = 0, q = 0;
  for (size_t i = 0; i < bits.size();) {
    if (bits[i]) {
      ++q;
      ++i;
      continue;
    }
    int64_t r = 0;
    for (int bit = 1; bit <= b; ++bit) r = 2 * r + (bits[i + bit] ? 1 : 0);
    j += (q << b) + r + 1;
    positions.push_back(static_cast<uint32_t>(j - 1));
    q = 0;
    i += b + 1;
  }
  return positions;
}

// The format, bit by bit: `lead` zeros, all remainders, all quotients, padding.
std::string PlainEncode(const std::vector<uint32_t>& positions, int64_t size, int lead) {
  const int b = RiceParameter(positions.size(), size);
  std::vector<bool> bits(lead);
  int64_t previous = -1;
  for (int64_t position : positions) {
    for (int i = 0; i < b; ++i) bits.push_back(((position - previous - 1) >> i & 1) != 0);
    previous = position;
  }
  previous = -1;
  for (int64_t position : positions) {
    bits.insert(bits.end(), (position - previous - 1) >> b, false);
    bits.push_back(true);
    previous = position;
  }
  std::string bytes((bits.size() + 7) / 8, '\0');
  for (size_t i = 0; i < bits.size(); ++i) bytes[i / 8] |= static_cast<char>(bits[i] << (i % 8));
  return bytes;
}

std::string Encode(const std::vector<uint32_t>& positions, int64_t size, int lead) {
  std::string bytes;
  BitWriter writer(&bytes);
  writer.Put(0, lead);
  RiceCoder().Put(positions, size, &writer);
  writer.Finish();
  return bytes;
}

std::vector<uint32_t> RandomPositions(int64_t count, int64_t size, Random* random) {
  std::vector<uint32_t> positions;
  if (8 * count > size) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t wanted = count - static_cast<int64_t>(positions.size());
      if (static_cast<int64_t>(random->Below(size - i)) < wanted) positions.push_back(static_cast<uint32_t>(i));
    }
    return positions;
  }
  while (static_cast<int64_t>(positions.size()) < count) {
    while (static_cast<int64_t>(positions.size()) < count) {
      positions.push_back(static_cast<uint32_t>(random->Below(size)));
    }
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  }
  return positions;
}

// Runs of neighbours far apart: quotients of zero next to very long ones.
std::vector<uint32_t> ClusteredPositions(int64_t count, int64_t size, Random* random) {
  std::vector<uint32_t> positions;
  int64_t place = 0;
  for (int64_t left = count; left > 0; --left) {
    const int64_t spare = size - place - left;
    if (random->Below(20) == 0 && spare > 0) place += static_cast<int64_t>(random->Below(spare + 1));
    positions.push_back(static_cast<uint32_t>(place++));
  }
  return positions;
}

struct Case {
  int64_t count;
  int64_t size;
};

// Every parameter, small and large counts.
std::vector<Case> Cases() {
  std::vector<Case> cases = {{1, 1}, {2, 2}, {300, 300}, {1, 2147483647}, {3, 2147483647}, {700, 2147483647}};
  for (int b = 0; b <= 29; ++b) {
    for (int64_t count : {1, 7, 8, 9, 255, 256, 257, 3000}) {
      const int64_t size = static_cast<int64_t>(static_cast<double>(count) * std::exp2(b) * 1.5);
      if (size < (int64_t{1} << 31)) cases.push_back({count, std::max(size, count)});
    }
  }
  return cases;
}

// A copy of exactly that many bytes on the heap, so that a sanitizer sees every read past them.
class Exact {
 public:
  explicit Exact(absl::string_view bytes) : size_(bytes.size()), bytes_(new char[bytes.size()]) {
    std::copy(bytes.begin(), bytes.end(), bytes_.get());
  }
  absl::string_view view() const { return absl::string_view(bytes_.get(), size_); }

 private:
  size_t size_;
  std::unique_ptr<char[]> bytes_;
};

// Reads all positions in runs of `run`, and Finish; the place behind them goes to `end`.
absl::StatusOr<std::vector<uint32_t>> Decode(absl::string_view bytes, int64_t count, int64_t size, int lead,
                                             int64_t run, uint64_t* end = nullptr) {
  BitReader stream(bytes);
  EXPECT_TRUE(stream.Skip(lead));
  auto reader = RiceCoder().Open(count, size, stream);
  if (!reader.ok()) return reader.status();
  std::vector<uint32_t> positions(count);
  for (int64_t at = 0; at < count; at += run) {
    const absl::Status status = (*reader)->Next(absl::MakeSpan(positions).subspan(at, run));
    if (!status.ok()) return status;
  }
  const auto behind = (*reader)->Finish();
  if (!behind.ok()) return behind.status();
  if (end != nullptr) *end = behind->position();
  return positions;
}

class RiceOnEveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(UseSimdTarget("").ok()); }
};

INSTANTIATE_TEST_SUITE_P(Targets, RiceOnEveryTarget, testing::ValuesIn(SimdTargets()),
                         [](const auto& info) { return info.param; });

TEST(RiceParameter, TakesThePublishedValues) {
  EXPECT_EQ(RiceParameter(1, 100), 6);  // equation (5): 8.108 bits at p = 0.01
  EXPECT_EQ(RiceParameter(1, 1000), 9);
  EXPECT_EQ(RiceParameter(1, 10), 3);
  EXPECT_EQ(RiceParameter(39, 100), 0);
  EXPECT_EQ(RiceParameter(38, 100), 1);
  EXPECT_EQ(RiceParameter(7, 7), 0);
  EXPECT_EQ(RiceParameter(1, 2147483647), 30);
}

TEST(RiceParameter, GivesTheMeanBitsOfEquation5) {
  const struct {
    int64_t one_in;
    double bits;
  } cases[] = {{10, 4.756}, {100, 8.108}, {1000, 11.495}, {10000, 14.788}};
  for (const auto& c : cases) EXPECT_NEAR(PaperBits(1.0 / c.one_in, RiceParameter(1, c.one_in)), c.bits, 0.0005);
  EXPECT_NEAR(PaperBits(0.03, RiceParameter(3, 100)), 6.592, 0.0005);
  EXPECT_NEAR(PaperBits(0.003, RiceParameter(3, 1000)), 9.864, 0.0005);
}

TEST(RiceParameter, EqualsEquation5OnADenseGrid) {
  for (int64_t size : {1, 2, 3, 10, 97, 1000, 4096, 30011}) {
    for (int64_t count = 1; count <= size; ++count) {
      ASSERT_EQ(RiceParameter(count, size), PaperParameter(count, size)) << count << " of " << size;
    }
  }
}

TEST(RiceParameter, EqualsEquation5AroundEveryThreshold) {
  Random random(7);
  for (int c = 1; c <= 30; ++c) {
    const long double threshold = -std::expm1(std::log((std::sqrt(5.0L) - 1) / 2) * std::exp2(1.0L - c));
    for (int i = 0; i < 200; ++i) {
      const int64_t size = static_cast<int64_t>((int64_t{1} << 30) + random.Below((int64_t{1} << 30) - 1));
      for (int64_t step = -2; step <= 2; ++step) {
        const int64_t count = static_cast<int64_t>(threshold * size) + step;
        if (count < 1) continue;
        ASSERT_EQ(RiceParameter(count, size), PaperParameter(count, size)) << count << " of " << size;
      }
    }
  }
}

TEST(Rice, HasTheBitsAndPositionsOfAlgorithms3And4) {
  Random random(1);
  for (int64_t size : {1, 2, 63, 64, 65, 1000, 20000}) {
    for (int64_t count : {int64_t{1}, size / 100, size / 10, size / 2, size}) {
      if (count < 1) continue;
      const std::vector<uint32_t> positions = RandomPositions(count, size, &random);
      const int b = RiceParameter(count, size);
      const std::vector<bool> paper = PaperEncode(positions, b);
      EXPECT_EQ(RiceCoder().Bits(positions, size), static_cast<int64_t>(paper.size()));
      EXPECT_LE(static_cast<int64_t>(paper.size()), RiceCoder().MaxBits(count, size));
      EXPECT_EQ(PaperDecode(paper, b), positions);
      const auto decoded = Decode(Encode(positions, size, 0), count, size, 0, count);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(*decoded, positions);
    }
  }
}

TEST(Rice, MaxBitsIsTheLongestCodeOfAnySubset) {
  const int64_t size = 16;  // 6 of 16 can take 17 bits, 7 to 16 no more than 16
  std::vector<int64_t> longest(size + 1);
  for (uint32_t mask = 1; mask < (1u << size); ++mask) {
    std::vector<uint32_t> positions;
    for (uint32_t i = 0; i < size; ++i) {
      if ((mask >> i & 1) != 0) positions.push_back(i);
    }
    int64_t& most = longest[positions.size()];
    most = std::max<int64_t>(most, PaperEncode(positions, RiceParameter(positions.size(), size)).size());
  }
  for (int64_t limit = 1; limit <= size; ++limit) {
    EXPECT_EQ(RiceMaxBits(limit, size), *std::max_element(longest.begin(), longest.begin() + limit + 1)) << limit;
    EXPECT_EQ(RiceCoder().MaxBits(limit, size), RiceMaxBits(limit, size));
  }
}

TEST(Rice, IsCloseToTheEntropyOfRandomPositions) {
  const struct {
    int64_t one_in;
    double most;
  } cases[] = {{100, 1.006}, {1000, 1.010}};
  const int64_t size = 10'000'000;
  for (const auto& c : cases) {
    Random random(11);
    const int64_t count = size / c.one_in;
    const std::vector<uint32_t> positions = RandomPositions(count, size, &random);
    const double entropy =
        (std::lgamma(size + 1.0) - std::lgamma(count + 1.0) - std::lgamma(size - count + 1.0)) / std::log(2.0);
    const double bits = static_cast<double>(RiceCoder().Bits(positions, size));
    EXPECT_LE(bits / entropy, c.most);
    EXPECT_GE(bits / entropy, 1.0);
    EXPECT_NEAR(bits / static_cast<double>(count), PaperBits(1.0 / c.one_in, RiceParameter(1, c.one_in)), 0.02);
  }
}

TEST_P(RiceOnEveryTarget, WritesTheFormatAndReadsItBack) {
  Random random(2);
  for (const Case& c : Cases()) {
    for (const bool clustered : {false, true}) {
      const std::vector<uint32_t> positions =
          clustered ? ClusteredPositions(c.count, c.size, &random) : RandomPositions(c.count, c.size, &random);
      const int lead = static_cast<int>(random.Below(32));
      const Exact bytes(Encode(positions, c.size, lead));
      SCOPED_TRACE(testing::Message() << c.count << " of " << c.size << " behind " << lead << " bits");
      ASSERT_EQ(bytes.view(), PlainEncode(positions, c.size, lead));
      uint64_t end = 0;
      const auto decoded = Decode(bytes.view(), c.count, c.size, lead, c.count, &end);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      ASSERT_EQ(*decoded, positions);
      ASSERT_EQ(static_cast<int64_t>(end), lead + RiceCoder().Bits(positions, c.size));
    }
  }
}

TEST_P(RiceOnEveryTarget, TakesTheLastAndTheFirstPositions) {
  for (int64_t size : {1, 100, 2147483647}) {
    for (uint32_t position : {uint32_t{0}, static_cast<uint32_t>(size - 1)}) {
      const std::vector<uint32_t> positions = {position};
      const auto decoded = Decode(Encode(positions, size, 3), 1, size, 3, 1);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(*decoded, positions);
    }
  }
}

TEST_P(RiceOnEveryTarget, ContinuesAStreamThatContinuesBehindIt) {
  Random random(5);
  std::string bytes;
  BitWriter writer(&bytes);
  std::vector<std::vector<uint32_t>> tensors;
  for (int64_t size : {1, 50, 5000, 70000, 3}) {
    tensors.push_back(RandomPositions(std::max<int64_t>(1, size / 50), size, &random));
    RiceCoder().Put(tensors.back(), size, &writer);
    writer.Put(5, 3);
  }
  writer.Finish();
  BitReader stream{absl::string_view(bytes)};
  const std::vector<int64_t> sizes = {1, 50, 5000, 70000, 3};
  for (size_t t = 0; t < sizes.size(); ++t) {
    auto reader = RiceCoder().Open(tensors[t].size(), sizes[t], stream);
    ASSERT_TRUE(reader.ok());
    std::vector<uint32_t> decoded(tensors[t].size());
    ASSERT_TRUE((*reader)->Next(absl::MakeSpan(decoded)).ok());
    EXPECT_EQ(decoded, tensors[t]);
    stream = *(*reader)->Finish();
    uint32_t mark = 0;
    ASSERT_TRUE(stream.Get(3, &mark));
    EXPECT_EQ(mark, 5u);
  }
  EXPECT_TRUE(stream.AtPaddedEnd());
}

TEST_P(RiceOnEveryTarget, ReadsRunsOfEveryLength) {
  Random random(3);
  const int64_t size = 60000;
  const std::vector<uint32_t> positions = RandomPositions(1100, size, &random);
  const Exact bytes(Encode(positions, size, 5));
  for (int64_t run = 1; run <= 1100; run += run < 300 ? 1 : 37) {
    const auto decoded = Decode(bytes.view(), 1100, size, 5, run);
    ASSERT_TRUE(decoded.ok()) << run;
    ASSERT_EQ(*decoded, positions) << run;
  }
}

TEST_P(RiceOnEveryTarget, ACloneGoesOnAlone) {
  Random random(4);
  const int64_t size = 100000;
  const std::vector<uint32_t> positions = RandomPositions(1000, size, &random);
  const std::string bytes = Encode(positions, size, 1);
  BitReader stream{absl::string_view(bytes)};
  stream.Skip(1);
  auto reader = RiceCoder().Open(1000, size, stream);
  ASSERT_TRUE(reader.ok());
  std::vector<uint32_t> first(413), rest(587), again(587);
  ASSERT_TRUE((*reader)->Next(absl::MakeSpan(first)).ok());
  const std::unique_ptr<PositionReader> clone = (*reader)->Clone();
  ASSERT_TRUE((*reader)->Next(absl::MakeSpan(rest)).ok());
  ASSERT_TRUE(clone->Next(absl::MakeSpan(again)).ok());
  EXPECT_EQ(again, rest);
  EXPECT_EQ(rest, std::vector<uint32_t>(positions.begin() + 413, positions.end()));
  EXPECT_EQ(clone->Finish()->position(), (*reader)->Finish()->position());
}

TEST_P(RiceOnEveryTarget, RefusesEveryTruncation) {
  Random random(6);
  for (const Case& c : {Case{400, 400}, Case{600, 20000}, Case{20, 2000000}, Case{5, 2147483647}}) {
    const std::vector<uint32_t> positions = RandomPositions(c.count, c.size, &random);
    const std::string whole = Encode(positions, c.size, 7);
    for (size_t length = 1; length < whole.size(); ++length) {
      const Exact bytes(absl::string_view(whole).substr(0, length));
      EXPECT_EQ(Decode(bytes.view(), c.count, c.size, 7, 256).status().code(), absl::StatusCode::kInvalidArgument)
          << length << " of " << whole.size();
    }
  }
}

TEST_P(RiceOnEveryTarget, RefusesAPositionPastTheTensor) {
  // The last position moves one by one past the end: remainders first, then quotients.
  for (const int64_t size : {9, 100, 1000, 100000}) {
    const std::vector<uint32_t> inside = {static_cast<uint32_t>(size - 1)};
    const int b = RiceParameter(1, size);
    for (int64_t past = 0; past < 70; ++past) {
      const uint32_t position = static_cast<uint32_t>(size - 1 + past);
      std::string message;
      BitWriter writer(&message);
      writer.Put(position & ((1u << b) - 1), b);
      writer.PutUnary(position >> b);
      writer.Finish();
      const Exact bytes(message);
      EXPECT_EQ(Decode(bytes.view(), 1, size, 0, 1).ok(), past == 0) << size << " and " << past;
    }
  }
}

TEST_P(RiceOnEveryTarget, RefusesALongUnaryRun) {
  for (const int64_t count : {1, 2, 4, 300}) {
    std::string bytes(1 << 16, '\0');
    bytes.append(100, '\xff');
    const Exact exact(bytes);
    EXPECT_EQ(Decode(exact.view(), count, 2147483647, 0, count).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// All gaps are 2^b: the largest remainders there are add up to less than the size.
TEST_P(RiceOnEveryTarget, LargestRemaindersStayInsideTheTensor) {
  for (const int64_t size : {2147483647, 1100000000, 1000, 3}) {
    for (int64_t count = 1; count <= std::min<int64_t>(size, 40000); count += 1 + count / 7) {
      const Exact bytes(std::string(count * 8, '\xff'));
      const auto decoded = Decode(bytes.view(), count, size, 0, count);
      ASSERT_TRUE(decoded.ok()) << count << " of " << size;
      EXPECT_EQ(decoded->back() + 1, count << RiceParameter(count, size));
    }
  }
}

// Arbitrary bytes decode to increasing positions inside the tensor or to a status, and only to what Put writes.
TEST_P(RiceOnEveryTarget, ReadsOnlyWhatItWrites) {
  Random random(8);
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const int64_t size = 1 + static_cast<int64_t>(random.Below(trial % 2 == 0 ? 300 : 2147483647));
    const int64_t count = 1 + static_cast<int64_t>(random.Below(std::min<int64_t>(size, trial % 3 == 0 ? 600 : 6)));
    std::string message(1 + random.Below(100 + count), '\0');
    const uint64_t density = random.Below(4);
    for (char& byte : message) {
      byte = static_cast<char>(density == 0 ? random.Next() & random.Next() & random.Next() : random.Next());
    }
    const Exact bytes(message);
    uint64_t end = 0;
    const auto decoded = Decode(bytes.view(), count, size, 0, 1 + static_cast<int64_t>(random.Below(300)), &end);
    if (!decoded.ok()) continue;
    ++accepted;
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_LT((*decoded)[i], size);
      if (i > 0) {
        ASSERT_GT((*decoded)[i], (*decoded)[i - 1]);
      }
    }
    const std::string again = Encode(*decoded, size, 0);
    BitReader left(bytes.view()), right{absl::string_view(again)};
    for (uint64_t bit = 0; bit < end; ++bit) {
      uint32_t a = 0, b = 0;
      ASSERT_TRUE(left.Get(1, &a) && right.Get(1, &b));
      ASSERT_EQ(a, b);
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace terse
