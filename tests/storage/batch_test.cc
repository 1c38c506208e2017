// Batches: several calls in one transaction, and what other threads see and wait for meanwhile.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "core/status.h"
#include "storage/forwarding_store.h"
#include "storage/run_store.h"
#include "tests/storage/store_place.h"

namespace terse {
namespace {

class BatchTest : public ::testing::TestWithParam<SqlEngine> {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    ASSERT_OK(store_->RegisterClient("a", 5).status());
  }
  void Reopen() {
    store_.reset();
    auto store = place_.Open();
    ASSERT_OK(store.status());
    store_ = *std::move(store);
  }
  // The state that another thread finds.
  RunState StateElsewhere() {
    RunState state = RunState::kActive;
    std::thread([&] { state = (*store_->Run())->state; }).join();
    return state;
  }

  const StorePlace place_{GetParam()};
  std::unique_ptr<RunStore> store_;
};

TERSE_ON_BOTH_ENGINES(BatchTest);

TEST_P(BatchTest, IsSeenByItsThreadAtOnceAndByOthersAfterwards) {
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "a reason"));
  ASSERT_OK(store_->OpenRound(1, 0, 1000));
  EXPECT_EQ((*store_->Run())->state, RunState::kPaused);
  EXPECT_EQ(*store_->GetRoundState(1), RoundState::kOpen);
  EXPECT_EQ(StateElsewhere(), RunState::kActive);
  ASSERT_OK(store_->CommitBatch());
  EXPECT_EQ(StateElsewhere(), RunState::kPaused);
  EXPECT_EQ(*store_->GetRoundState(1), RoundState::kOpen);
}

TEST_P(BatchTest, ADroppedOneHasNotHappened) {
  const std::string before = place_.Dump();
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "a reason"));
  store_->DropBatch();
  EXPECT_EQ(place_.Dump(), before);
  EXPECT_EQ((*store_->Run())->state, RunState::kActive);
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "outside of a batch again"));
  EXPECT_EQ(StateElsewhere(), RunState::kPaused);
}

TEST_P(BatchTest, AnErrorWithinItTakesAllOfItBack) {
  const std::string before = place_.Dump();
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "a reason"));
  EXPECT_CODE(store_->AbortRound(7, "there is no such round", 1000), kFailedPrecondition, "round 7");
  EXPECT_CODE(store_->OpenRound(1, 0, 1000), kFailedPrecondition, "round 7");
  EXPECT_CODE(store_->CommitBatch(), kFailedPrecondition, "round 7");
  EXPECT_EQ(place_.Dump(), before);
  ASSERT_OK(store_->OpenRound(1, 0, 1000));
}

TEST_P(BatchTest, AProcessThatDiesWithinItLeavesNothing) {
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "a reason"));
  Reopen();
  EXPECT_EQ((*store_->Run())->state, RunState::kActive);
}

TEST_P(BatchTest, IsOneThreadsAndOneAtATime) {
  EXPECT_CODE(store_->CommitBatch(), kFailedPrecondition, "no batch");
  store_->DropBatch();  // without effect
  ASSERT_OK(store_->BeginBatch());
  EXPECT_CODE(store_->BeginBatch(), kFailedPrecondition, "already");
  std::thread([&] { EXPECT_CODE(store_->CommitBatch(), kFailedPrecondition, "no batch"); }).join();
  ASSERT_OK(store_->CommitBatch());
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->CommitBatch());
}

TEST_P(BatchTest, OthersChangesWaitForItsEnd) {
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(store_->SetRunState(RunState::kPaused, "first"));
  std::atomic<bool> changed{false};
  std::thread other([&] {
    EXPECT_OK(store_->SetRunState(RunState::kActive, "second"));
    changed = true;
  });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_FALSE(changed);
  ASSERT_OK(store_->CommitBatch());
  other.join();
  EXPECT_EQ((*store_->Run())->reason, "second");
}

// A store that tells of the events that it was given, once they are durable.
class Teller : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::Status AddEvent(const EventRecord& event) override {
    TERSE_RETURN_IF_ERROR(ForwardingStore::AddEvent(event));
    OnceDurable([this, kind = event.kind] { told += kind; });
    return absl::OkStatus();
  }
  std::string told;

 protected:
  absl::Status Around(absl::string_view, absl::FunctionRef<absl::Status()> call) override { return call(); }
};

TEST_P(BatchTest, WhatIsToldOnceDurableWaitsForTheCommit) {
  Teller teller(std::move(store_));
  ASSERT_OK(teller.AddEvent({1, "a", 0, -1, ""}));
  EXPECT_EQ(teller.told, "a");
  ASSERT_OK(teller.BeginBatch());
  ASSERT_OK(teller.AddEvent({1, "b", 0, -1, ""}));
  EXPECT_EQ(teller.told, "a");
  ASSERT_OK(teller.CommitBatch());
  EXPECT_EQ(teller.told, "ab");
  ASSERT_OK(teller.BeginBatch());
  ASSERT_OK(teller.AddEvent({1, "c", 0, -1, ""}));
  teller.DropBatch();
  ASSERT_OK(teller.BeginBatch());
  ASSERT_OK(teller.AddEvent({1, "d", 0, -1, ""}));
  EXPECT_CODE(teller.AbortRound(7, "there is no such round", 1000), kFailedPrecondition, "round 7");
  EXPECT_FALSE(teller.CommitBatch().ok());
  EXPECT_EQ(teller.told, "ab");
}

}  // namespace
}  // namespace terse
