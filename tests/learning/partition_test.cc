#include "learning/partition.h"

#include <algorithm>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(PartitionTest, IidShardsAreDisjointEvenAndComplete) {
  for (const int64_t count : {1, 3, 4, 7, 100}) {
    std::vector<uint32_t> all;
    for (int64_t index = 0; index < count; ++index) {
      const std::vector<uint32_t> shard = PartitionExamples("iid", 1000, {index, count}, 5).value();
      EXPECT_GE(static_cast<int64_t>(shard.size()), 1000 / count);
      EXPECT_LE(static_cast<int64_t>(shard.size()), (1000 + count - 1) / count);
      all.insert(all.end(), shard.begin(), shard.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<uint32_t> expected(1000);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(all, expected);
  }
}

TEST(PartitionTest, IidIsAShuffleByTheSeed) {
  const std::vector<uint32_t> shard = PartitionExamples("iid", 1000, {1, 4}, 5).value();
  EXPECT_FALSE(std::is_sorted(shard.begin(), shard.end()));
  EXPECT_EQ(shard, PartitionExamples("iid", 1000, {1, 4}, 5).value());
  EXPECT_NE(shard, PartitionExamples("iid", 1000, {1, 4}, 6).value());
  // Uniform draws of 250 from 0..999 have a mean of 499.5 with a standard deviation of about 16.
  EXPECT_NEAR(std::accumulate(shard.begin(), shard.end(), 0.0) / shard.size(), 499.5, 65);
}

TEST(PartitionTest, AllIsEverythingForEveryShard) {
  const std::vector<uint32_t> shard = PartitionExamples("all", 10, {2, 4}, 5).value();
  EXPECT_EQ(shard.size(), 10u);
  EXPECT_TRUE(std::is_sorted(shard.begin(), shard.end()));
}

TEST(PartitionTest, RefusesWhatDoesNotExist) {
  for (const Shard& shard : {Shard{-1, 4}, Shard{4, 4}, Shard{0, 0}, Shard{0, 11}}) {
    EXPECT_EQ(PartitionExamples("iid", 10, shard, 5).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(PartitionExamples("dirichlet", 10, {0, 1}, 5).status().message()), HasSubstr("iid, all"));
}

}  // namespace
}  // namespace terse
