#include "compression/chunk12.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compression/positions.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSize = 3 * 4096 + 10;  // four chunks

// `each` positions in each of the first three chunks and `last` in the fourth.
Positions Even(uint32_t each, uint32_t last) {
  Positions positions;
  for (uint32_t chunk = 0; chunk < 4; ++chunk) {
    for (uint32_t i = 0; i < (chunk < 3 ? each : last); ++i) positions.push_back(4096 * chunk + i);
  }
  return positions;
}

// A stream with this header and twelve bits for each place.
std::string Stream(const std::vector<std::pair<uint32_t, int>>& header, const Positions& places) {
  std::string bytes;
  BitWriter writer(&bytes);
  for (const auto& field : header) writer.Put(field.first, field.second);
  for (const uint32_t place : places) writer.Put(place, 12);
  writer.Finish();
  return bytes;
}

TEST(Chunk12, TakesTwelveBitsAPositionAndAHeaderForEqualChunks) {
  EXPECT_EQ(Chunk12Coder().Bits({0, 7, 4095}, 4096), 36);
  EXPECT_EQ(Chunk12Coder().Bits({5}, 10), 12);
  EXPECT_EQ(Chunk12Coder().Bits(Even(64, 1), kSize), 14 + 12 * (3 * 64 + 1));
  EXPECT_EQ(Chunk12Coder().Bits(Even(64, 0), kSize), 14 + 12 * 3 * 64);
  EXPECT_EQ(Chunk12Coder().Bits(Even(0, 2), kSize), 14 + 12 * 2);
}

TEST(Chunk12, WritesTheCountsOfUnequalChunks) {
  Positions positions = Even(2, 1);
  positions.erase(positions.begin() + 3);
  EXPECT_EQ(Chunk12Coder().Bits(positions, kSize), 1 + 3 * 13 + 12 * 6);
  EXPECT_EQ(Chunk12Coder().Bits({4096 + 5}, kSize), 1 + 3 * 13 + 12);
}

TEST(Chunk12, RefusesHeadersThatItDoesNotWrite) {
  const auto refusal = [](int64_t count, const std::string& bytes) {
    const auto decoded = DecodePositions(Chunk12Coder(), count, kSize, BitReader(bytes));
    return std::string(decoded.status().message());
  };
  EXPECT_EQ(refusal(4, Stream({{1, 1}, {1, 13}}, {0, 1, 2, 3})), "");
  EXPECT_THAT(refusal(4, Stream({{1, 1}, {2, 13}}, {0, 1, 2, 3})), HasSubstr("do not add up"));
  EXPECT_THAT(refusal(11, Stream({{1, 1}, {0, 13}}, Positions(11, 0))), HasSubstr("do not add up"));
  EXPECT_THAT(refusal(4, Stream({{1, 1}, {4097, 13}}, {0, 1, 2, 3})), HasSubstr("more positions than elements"));
  EXPECT_THAT(refusal(4, Stream({{0, 1}, {1, 13}, {1, 13}, {1, 13}}, {0, 1, 2, 3})), HasSubstr("written once"));
  EXPECT_THAT(refusal(4, Stream({{0, 1}, {4097, 13}, {1, 13}, {1, 13}}, {0, 1, 2, 3})), HasSubstr("more positions"));
  EXPECT_THAT(refusal(4, Stream({{0, 1}, {3, 13}, {1, 13}, {1, 13}}, {0, 1, 2, 3})), HasSubstr("do not add up"));
  EXPECT_EQ(refusal(4, Stream({{0, 1}, {2, 13}, {1, 13}, {1, 13}}, {0, 1, 2, 3})), "");
}

TEST(Chunk12, RefusesPlacesThatDoNotIncreaseOrLieBehindTheTensor) {
  const auto refusal = [](int64_t count, const std::string& bytes) {
    const auto decoded = DecodePositions(Chunk12Coder(), count, kSize, BitReader(bytes));
    return std::string(decoded.status().message());
  };
  EXPECT_EQ(refusal(2, Stream({{1, 1}, {0, 13}}, {8, 9})), "");
  EXPECT_THAT(refusal(2, Stream({{1, 1}, {0, 13}}, {8, 8})), HasSubstr("do not increase"));
  EXPECT_THAT(refusal(2, Stream({{1, 1}, {0, 13}}, {9, 10})), HasSubstr("past the end"));
}

}  // namespace
}  // namespace terse
