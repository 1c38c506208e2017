// The history of a client's applied updates on the server: when it grows, shrinks and ends.
#include "storage/run_store.h"
#include "tests/storage/store_place.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunStoreHistory : public ::testing::TestWithParam<SqlEngine> {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    for (const char* name : {"a", "b"}) ASSERT_OK(store_->RegisterClient(name, 5).status());
    ASSERT_OK(store_->OpenRound(1, 0, 1000));
  }
  void Reopen() {
    store_.reset();
    store_ = place_.Open().value();
  }
  // Client 0's update of the open round is the only one.
  absl::Status CommitOne(int64_t round, std::vector<HistoryMessage> history) {
    const Id128 previous = store_->GetClient(0)->last_applied;
    if (absl::Status status = store_->CloseRound(round, {TestUpdate(0, round, previous)}, 1); !status.ok())
      return status;
    return Commit(round, std::move(history));
  }
  absl::Status Commit(int64_t round, std::vector<HistoryMessage> history) {
    terse::Commit commit = TestCommit(round);
    commit.history = std::move(history);
    return store_->CommitRound(commit, true);
  }

  const StorePlace place_{GetParam()};
  std::unique_ptr<RunStore> store_;
};

TERSE_ON_BOTH_ENGINES(RunStoreHistory);

TEST_P(RunStoreHistory, GrowsWithCommitsAndIsCompacted) {
  EXPECT_EQ(store_->ReadHistory(0)->count(), 0);
  ASSERT_OK(CommitOne(1, {{0, "one"}}));
  ASSERT_OK(CommitOne(2, {{0, std::string("t\0wo", 4)}}));
  EXPECT_THAT(store_->ReadHistory(0)->log, ElementsAre("one", std::string("t\0wo", 4)));
  EXPECT_EQ(store_->ReadHistory(1)->count(), 0);
  ASSERT_OK(store_->CompactHistory(0, 2, "state of two"));
  ASSERT_OK(CommitOne(3, {{0, "three"}}));
  Reopen();
  const HistoryRecord history = *store_->ReadHistory(0);
  EXPECT_EQ(history.messages, 2);
  EXPECT_EQ(history.state, "state of two");
  EXPECT_THAT(history.log, ElementsAre("three"));
  EXPECT_EQ(history.count(), 3);
}

TEST_P(RunStoreHistory, MovesWithLastAppliedOrNotAtAll) {
  ASSERT_OK(store_->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1));
  const std::string before = place_.Dump();
  EXPECT_CODE(Commit(1, {{0, "one"}, {1, "not chosen"}}), kFailedPrecondition, "no update of client 1");
  EXPECT_EQ(place_.Dump(), before);
  ASSERT_OK(Commit(1, {{0, "one"}}));
  EXPECT_EQ(store_->ReadHistory(0)->count(), 1);
}

TEST_P(RunStoreHistory, AStateIsOfAllUpdatesSoFar) {
  EXPECT_CODE(store_->CompactHistory(0, 0, "nothing"), kFailedPrecondition, "one of 0 updates");
  ASSERT_OK(CommitOne(1, {{0, "one"}}));
  ASSERT_OK(CommitOne(2, {{0, "two"}}));
  EXPECT_CODE(store_->CompactHistory(0, 1, "too few"), kFailedPrecondition, "one of 2 updates, not 1");
  EXPECT_CODE(store_->CompactHistory(0, 3, "too many"), kFailedPrecondition, "one of 2 updates, not 3");
  ASSERT_OK(store_->CompactHistory(0, 2, "state"));
  ASSERT_OK(store_->CompactHistory(0, 2, "again"));
  EXPECT_EQ(store_->ReadHistory(0)->state, "again");
  EXPECT_THAT(store_->ReadHistory(0)->log, IsEmpty());
}

TEST_P(RunStoreHistory, AResetEndsIt) {
  ASSERT_OK(CommitOne(1, {{0, "one"}}));
  ASSERT_OK(store_->CompactHistory(0, 1, "state"));
  ASSERT_OK(CommitOne(2, {{0, "two"}}));
  ASSERT_OK(store_->RecordReset(1));
  EXPECT_EQ(store_->ReadHistory(0)->count(), 2);
  ASSERT_OK(store_->RecordReset(0));
  EXPECT_EQ(store_->ReadHistory(0)->count(), 0);
  ASSERT_OK(CommitOne(3, {{0, "three"}}));
  EXPECT_THAT(store_->ReadHistory(0)->log, ElementsAre("three"));
}

TEST_P(RunStoreHistory, OneIsForgottenWithoutTheOthers) {
  ASSERT_OK(CommitOne(1, {{0, "one"}}));
  ASSERT_OK(store_->CompactHistory(0, 1, "state"));
  ASSERT_OK(CommitOne(2, {{0, "two"}}));
  ASSERT_OK(store_->ForgetHistory(1));
  EXPECT_EQ(store_->ReadHistory(0)->count(), 2);
  ASSERT_OK(store_->ForgetHistory(0));
  EXPECT_EQ(store_->ReadHistory(0)->count(), 0);
  EXPECT_EQ(store_->ReadHistory(0)->state, "");
  EXPECT_EQ(store_->GetClient(0)->resets, 0);
  ASSERT_OK(CommitOne(3, {{0, "three"}}));
  EXPECT_THAT(store_->ReadHistory(0)->log, ElementsAre("three"));
}

TEST_P(RunStoreHistory, AMissingUpdateIsDamage) {
  for (int64_t round = 1; round <= 3; ++round) ASSERT_OK(CommitOne(round, {{0, "update"}}));
  const std::unique_ptr<SqlDb> db = place_.Connect();
  ASSERT_OK(db->Script("DELETE FROM history_log WHERE number = 2"));
  EXPECT_CODE(store_->ReadHistory(0).status(), kDataLoss, "update 2 of client 0's history is missing");
}

}  // namespace
}  // namespace terse
