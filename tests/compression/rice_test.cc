#include "compression/rice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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

std::vector<uint32_t> RandomPositions(int64_t count, int64_t size, Random* random) {
  std::vector<uint32_t> positions;
  for (int64_t i = 0; i < size; ++i) {
    if (static_cast<int64_t>(random->Below(size - i)) < count - static_cast<int64_t>(positions.size())) {
      positions.push_back(static_cast<uint32_t>(i));
    }
  }
  return positions;
}

struct Streams {
  std::string bytes;
  int64_t remainder_bits;
  int64_t quotient_bits;
};

Streams Encode(const std::vector<uint32_t>& positions, int b) {
  Streams streams;
  BitWriter writer(&streams.bytes);
  PutRiceRemainders(positions, b, &writer);
  PutRiceQuotients(positions, b, &writer);
  writer.Finish();
  streams.remainder_bits = static_cast<int64_t>(positions.size()) * b;
  BitReader reader(streams.bytes);
  reader.Skip(streams.remainder_bits);
  uint64_t quotient = 0;
  for (size_t i = 0; i < positions.size(); ++i) reader.GetUnary(&quotient);
  streams.quotient_bits = static_cast<int64_t>(reader.position()) - streams.remainder_bits;
  return streams;
}

RiceDecoder Decoder(const Streams& streams) {
  BitReader remainders{absl::string_view(streams.bytes)};
  BitReader quotients = remainders;
  quotients.Skip(streams.remainder_bits);
  return RiceDecoder(remainders, quotients);
}

TEST(RiceParameter, TakesThePublishedValues) {
  EXPECT_EQ(RiceParameter(1, 100), 6);  // equation (5): 8.108 bits at p = 0.01
  EXPECT_EQ(RiceParameter(1, 1000), 9);
  EXPECT_EQ(RiceParameter(1, 10), 3);
  EXPECT_EQ(RiceParameter(39, 100), 0);
  EXPECT_EQ(RiceParameter(38, 100), 1);
  EXPECT_EQ(RiceParameter(7, 7), 0);
  EXPECT_EQ(RiceParameter(1, 2147483647), 30);
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
      const Streams streams = Encode(positions, b);
      EXPECT_EQ(streams.remainder_bits + streams.quotient_bits, static_cast<int64_t>(paper.size()));
      EXPECT_LE(static_cast<int64_t>(paper.size()), RiceMaxBits(count, size));
      std::vector<uint32_t> decoded(count);
      RiceDecoder decoder = Decoder(streams);
      decoder.StartTensor(0, size, b);
      ASSERT_TRUE(decoder.Next(absl::MakeSpan(decoded)).ok());
      EXPECT_TRUE(decoder.Finish().ok());
      EXPECT_EQ(decoded, positions);
      EXPECT_EQ(PaperDecode(paper, b), positions);
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
  }
}

TEST(RiceDecoder, AddsTheBase) {
  const Streams streams = Encode({0, 9}, 2);
  RiceDecoder decoder = Decoder(streams);
  decoder.StartTensor(1000, 10, 2);
  std::vector<uint32_t> decoded(2);
  ASSERT_TRUE(decoder.Next(absl::MakeSpan(decoded)).ok());
  EXPECT_EQ(decoded, (std::vector<uint32_t>{1000, 1009}));
}

TEST(RiceDecoder, RefusesAPositionPastTheTensor) {
  const Streams streams = Encode({0, 9}, 2);
  RiceDecoder decoder = Decoder(streams);
  decoder.StartTensor(0, 9, 2);
  std::vector<uint32_t> decoded(2);
  EXPECT_EQ(decoder.Next(absl::MakeSpan(decoded)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(RiceDecoder, RefusesALongUnaryRun) {
  std::string bytes(1 << 10, '\0');
  bytes.push_back(1);
  RiceDecoder decoder{BitReader(absl::string_view(bytes)), BitReader(absl::string_view(bytes))};
  decoder.StartTensor(0, 2147483647, 30);
  std::vector<uint32_t> decoded(1);
  EXPECT_EQ(decoder.Next(absl::MakeSpan(decoded)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(RiceDecoder, RefusesAMissingOneAndDirtyPadding) {
  Streams streams = Encode({3}, 0);  // 0001, padded to 0x08
  ASSERT_EQ(streams.bytes, "\x08");
  std::vector<uint32_t> decoded(2);
  RiceDecoder missing = Decoder(streams);
  missing.StartTensor(0, 10, 0);
  EXPECT_FALSE(missing.Next(absl::MakeSpan(decoded)).ok());
  streams.bytes = "\x88";
  RiceDecoder dirty = Decoder(streams);
  dirty.StartTensor(0, 10, 0);
  ASSERT_TRUE(dirty.Next(absl::MakeSpan(decoded).subspan(0, 1)).ok());
  EXPECT_FALSE(dirty.Finish().ok());
}

}  // namespace
}  // namespace terse
