#include "core/id128.h"

#include <gtest/gtest.h>

#include <set>

namespace terse {
namespace {

TEST(Id128, BytesAreBigEndianHighWordFirst) {
  const Id128 id{0x0102030405060708, 0x090a0b0c0d0e0ff0};
  EXPECT_EQ(id.ToBytes(), std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xf0", 16));
  EXPECT_EQ(id.ToHex(), "0102030405060708090a0b0c0d0e0ff0");
  EXPECT_EQ(*Id128::FromBytes(id.ToBytes()), id);
}

TEST(Id128, OnlySixteenBytesOrNoneMakeAnId) {
  EXPECT_TRUE(Id128::FromBytes("")->IsZero());
  for (size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(Id128::FromBytes(std::string(size, 'x')).ok(), size == 16) << size;
  }
  EXPECT_EQ(Id128::FromBytes("short").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Id128, OrderIsThatOfTheBytes) {
  const Id128 ids[] = {{0, 0}, {0, 1}, {0, ~uint64_t{0}}, {1, 0}, {1, 5}, {uint64_t{1} << 63, 0}};
  for (const Id128& a : ids) {
    for (const Id128& b : ids) {
      EXPECT_EQ(a < b, a.ToBytes() < b.ToBytes());
      EXPECT_EQ(a == b, a.ToBytes() == b.ToBytes());
      EXPECT_NE(a == b, a != b);
    }
  }
}

TEST(Id128, RandomIdsDiffer) {
  std::set<Id128> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(Id128::Random()).second);
}

// Values of libxxhash 0.8.1's XXH3_128bits.
TEST(Id128, HashesAreXxh3) {
  EXPECT_EQ(HashBytes("").ToHex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(HashBytes("terse").ToHex(), "034cd1078fa3ca4eb81baa14787d3d9f");
  EXPECT_EQ(HashWeights({1.0f, -2.5f, 0.125f}).ToHex(), "dbe3f8486fcace1a5be9591ba514403b");
}

}  // namespace
}  // namespace terse
