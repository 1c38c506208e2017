// Readers, a checkpointing thread and the committing thread on one store; run under ThreadSanitizer as well.
#include <atomic>
#include <thread>

#include "tests/storage/store_place.h"

namespace terse {
namespace {

class RunStoreConcurrency : public ::testing::TestWithParam<SqlEngine> {};

TERSE_ON_BOTH_ENGINES(RunStoreConcurrency);

TEST_P(RunStoreConcurrency, ReadersAndCheckpointsBesideCommits) {
  constexpr int64_t kRounds = 150;
  const StorePlace place(GetParam());
  auto opened = place.Open();
  ASSERT_OK(opened.status());
  RunStore& store = **opened;
  ASSERT_OK(store.CreateRun(TestRun(4), TestWeights(0)));
  std::atomic<bool> done{false};

  std::thread reader([&] {
    int64_t version = 0;
    while (!done) {
      const Head head = *store.GetHead();
      EXPECT_GE(head.version, version);
      EXPECT_EQ(head.model_hash, TestHash(head.version));
      version = head.version;
      const absl::Status log = store.LogBytes(version).status();
      // Checkpoints of later versions may have taken it away since.
      EXPECT_TRUE(log.ok() || (absl::IsOutOfRange(log) && store.GetHead()->version > version)) << log;
      EXPECT_OK(store.Rounds(1, kRounds).status());
      EXPECT_OK(store.LastRound().status());
      EXPECT_OK(store.Clients().status());
    }
  });
  std::thread checkpointer([&] {
    int64_t last = 0;
    while (!done) {
      const int64_t version = store.GetHead()->version;
      if (version == last) continue;
      EXPECT_OK(store.WriteCheckpoint(TestCheckpoint(version), 2));
      EXPECT_EQ(store.ReadNewestCheckpoint()->version, version);
      last = version;
    }
  });
  for (int64_t round = 1; round <= kRounds; ++round) ASSERT_OK(RunRound(store, round));
  done = true;
  reader.join();
  checkpointer.join();
  EXPECT_EQ(store.GetHead()->version, kRounds);
  EXPECT_EQ(store.GetClient(0)->updates_applied, kRounds);
}

}  // namespace
}  // namespace terse
