#include "coordinator/rpc/write_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace terse {
namespace {

constexpr int64_t kWhole = WriteBudget::kMostBytes / kChunkBytes;  // chunks that the budget has room for

TEST(WriteBudget, GivesWholeChunksWhileItLastsAndSmallOnesThen) {
  WriteBudget budget;
  std::vector<WriteBudget::Share> shares;
  for (int64_t i = 0; i < kWhole; ++i) {
    shares.push_back(budget.Take(10 * kChunkBytes));
    ASSERT_EQ(shares.back().bytes(), kChunkBytes);
  }
  EXPECT_EQ(budget.Take(kChunkBytes).bytes(), WriteBudget::kAlwaysBytes);
  shares.pop_back();
  EXPECT_EQ(budget.Take(kChunkBytes).bytes(), kChunkBytes) << "what ended is there again";
}

TEST(WriteBudget, BoundsManyClientsAtOnce) {
  constexpr int64_t kClients = 10'000;
  WriteBudget budget;
  std::vector<WriteBudget::Share> shares;
  int64_t bytes = 0;
  for (int64_t i = 0; i < kClients; ++i) {
    shares.push_back(budget.Take(kChunkBytes));
    EXPECT_GT(shares.back().bytes(), 0) << "nobody waits for the others";
    bytes += shares.back().bytes();
  }
  EXPECT_LE(bytes, WriteBudget::kMostBytes + kClients * WriteBudget::kAlwaysBytes);
}

TEST(WriteBudget, SmallWritesHoldNothing) {
  WriteBudget budget;
  const WriteBudget::Share share = budget.Take(700);
  EXPECT_EQ(share.bytes(), 700);
  EXPECT_EQ(budget.left(), WriteBudget::kMostBytes);
}

TEST(WriteBudget, AShareGoesBackOnceWhereverItWasMoved) {
  WriteBudget budget;
  {
    WriteBudget::Share first = budget.Take(kChunkBytes);
    WriteBudget::Share second = std::move(first);
    EXPECT_EQ(budget.left(), WriteBudget::kMostBytes - kChunkBytes);
    second = budget.Take(kChunkBytes);
    EXPECT_EQ(budget.left(), WriteBudget::kMostBytes - kChunkBytes) << "the one before it is back";
  }
  EXPECT_EQ(budget.left(), WriteBudget::kMostBytes);
}

TEST(WriteBudget, ThreadsLeaveItWhole) {
  WriteBudget budget;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 20'000; ++i) EXPECT_GE(budget.Take(kChunkBytes).bytes(), WriteBudget::kAlwaysBytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.left(), WriteBudget::kMostBytes);
}

}  // namespace
}  // namespace terse
