// The failpoints and the mutants of storage/: each does what its name says. Empty where they are not compiled in.
#include "core/fault.h"

#ifdef TERSE_FAULTS

#include <functional>
#include <set>

#include "tests/storage/client_state_testing.h"
#include "tests/storage/store_place.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

// Fails at one failpoint and notes all.
class Failure final : public FailpointHook {
 public:
  explicit Failure(std::string name = "") : name_(std::move(name)) { SetThreadFailpointHook(this); }
  ~Failure() override { SetThreadFailpointHook(nullptr); }
  absl::Status OnFailpoint(absl::string_view name) override {
    seen_.insert(std::string(name));
    return name == name_ ? absl::UnavailableError(name_) : absl::OkStatus();
  }
  const std::set<std::string>& seen() const { return seen_; }

 private:
  const std::string name_;
  std::set<std::string> seen_;
};

class WithMutant {
 public:
  explicit WithMutant(Mutant mutant) { SetMutant(mutant); }
  ~WithMutant() { SetMutant(Mutant::kNone); }
};

int SyncsOf(absl::string_view end, const std::function<void()>& body) {
  int syncs = 0;
  const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
    if (call == "sync" && absl::EndsWith(path, end)) ++syncs;
    return 0;
  });
  body();
  return syncs;
}

// A store whose round 1 is closed with client 0's update.
std::unique_ptr<RunStore> ClosedStore(const std::string& directory) {
  auto store = RunStore::Open(directory).value();
  EXPECT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  EXPECT_OK(store->RegisterClient("a", 1).status());
  EXPECT_OK(store->OpenRound(1, 0, 1));
  EXPECT_OK(store->CloseRound(1, {TestUpdate(0, 1, Id128())}, 2));
  return store;
}

TEST(StorageFaults, EveryStepComesByItsFailpoints) {
  const Failure none;
  TempDirectory directory;
  auto store = ClosedStore(directory.Path("run"));
  Commit commit = TestCommit(1);
  commit.downstream.assign(100'000, 'x');
  ASSERT_OK(store->CommitRound(commit, true));
  Checkpoint checkpoint = TestCheckpoint(1);
  checkpoint.server_state = {0.5f};
  ASSERT_OK(store->WriteCheckpoint(checkpoint, 1));
  auto state = ClientState::Open(directory.Path("client")).value();
  ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
  ASSERT_OK(SealNumber(*state, 1));
  ASSERT_OK(state->Settle(true));
  ASSERT_OK(state->Reset(Id128()));
  ASSERT_OK(state->Move(Id128{1, 2}, {}).status());
  for (const char* name :
       {"file.write.before_sync", "file.replace.before_rename", "file.replace.before_directory_sync",
        "client.restart.loaded", "client.seal.before_blobs", "client.seal.before_manifest", "client.seal.done",
        "client.settle.before_manifest", "client.settle.done", "client.reset.done", "client.move.before_manifest",
        "client.move.done", "coordinator.restart.locked", "coordinator.restart.epoch_bumped",
        "coordinator.commit.in_transaction", "coordinator.segment.synced", "coordinator.checkpoint.state_written",
        "coordinator.checkpoint.before_row", "coordinator.checkpoint.recorded"}) {
    EXPECT_EQ(none.seen().count(name), 1) << name;
  }
}

TEST(StorageFaults, AFailureInsideTheCommitLeavesNothingUnlessItIsSplit) {
  for (bool split : {false, true}) {
    const WithMutant mutant(split ? Mutant::kSplitTransaction : Mutant::kNone);
    TempDirectory directory;
    auto store = ClosedStore(directory.Path());
    {
      const Failure failure("coordinator.commit.in_transaction");
      EXPECT_CODE(store->CommitRound(TestCommit(1), true), kUnavailable, "in_transaction");
    }
    EXPECT_EQ(store->GetHead()->version, 0);
    EXPECT_EQ(store->GetClient(0)->last_applied.IsZero(), !split);
    EXPECT_EQ(*store->GetRoundState(1), split ? RoundState::kCommitted : RoundState::kClosed);
  }
}

TEST(StorageFaults, AFailureBetweenASegmentAndTheCommitLeavesOnlyGarbage) {
  for (bool batched : {false, true}) {
    TempDirectory directory;
    auto store = ClosedStore(directory.Path());
    Commit commit = TestCommit(1);
    commit.downstream.assign(100'000, 'x');
    const auto commit_round = [&]() -> absl::Status {
      if (!batched) return store->CommitRound(commit, true);
      if (absl::Status status = store->BeginBatch(); !status.ok()) return status;
      EXPECT_OK(store->CommitRound(commit, true));
      return store->CommitBatch();
    };
    {
      const Failure failure("coordinator.segment.synced");
      EXPECT_CODE(commit_round(), kUnavailable, "segment.synced");
    }
    EXPECT_EQ(store->GetHead()->version, 0);
    EXPECT_TRUE(std::filesystem::exists(directory.Path("segments/0000000001.seg")));
    EXPECT_OK(commit_round()) << "the same call works later";
    EXPECT_EQ(store->ReadLog(0, 1)->front().downstream, commit.downstream);
  }
}

TEST(StorageFaults, AClosedRoundIsAbortedUnlessItIsReopened) {
  for (bool reopened : {false, true}) {
    const WithMutant mutant(reopened ? Mutant::kReopenClosed : Mutant::kNone);
    TempDirectory directory;
    ClosedStore(directory.Path()).reset();
    auto store = RunStore::Open(directory.Path()).value();
    EXPECT_EQ(*store->GetRoundState(1), reopened ? RoundState::kOpen : RoundState::kAborted);
    EXPECT_EQ(*store->WasChosen(1, 0), !reopened);
  }
}

// PostgresFenceTest expects the same of every call; this is the one that matters most.
TEST(StorageFaults, AnOlderOpeningCommitsNothingUnlessNobodyLooks) {
  for (bool unfenced : {false, true}) {
    const WithMutant mutant(unfenced ? Mutant::kNoFencing : Mutant::kNone);
    const StorePlace place(SqlEngine::kPostgres);
    const TempDirectory elsewhere;
    const auto older = place.Open().value();
    ASSERT_OK(older->CreateRun(TestRun(4), TestWeights(0)));
    ASSERT_OK(older->RegisterClient("a", 1).status());
    ASSERT_OK(older->OpenRound(1, 0, 1));
    const auto newer = PostgresRunStore::Open(PostgresServer::Shared().address(), place.schema(), elsewhere.Path(),
                                              PosixFiles(), MessageLimits())
                           .value();
    EXPECT_EQ(older->CloseRound(1, {TestUpdate(0, 1, Id128())}, 2).ok(), unfenced);
    EXPECT_EQ(*newer->GetRoundState(1), unfenced ? RoundState::kClosed : RoundState::kOpen);
  }
}

TEST(StorageFaults, ACommitIsSyncedUnlessSynchronousIsNormal) {
  for (bool normal : {false, true}) {
    const WithMutant mutant(normal ? Mutant::kSyncNormal : Mutant::kNone);
    TempDirectory directory;
    auto store = ClosedStore(directory.Path());
    EXPECT_EQ(SyncsOf("-wal", [&] { EXPECT_OK(store->CommitRound(TestCommit(1), true)); }), normal ? 0 : 1);
  }
}

TEST(StorageFaults, BlobsAreSyncedUnlessTheManifestIsRenamedFirst) {
  for (bool mutated : {false, true}) {
    const WithMutant mutant(mutated ? Mutant::kRenameBeforeSync : Mutant::kNone);
    TempDirectory directory;
    auto state = ClientState::Open(directory.Path()).value();
    ASSERT_OK(state->Begin(kLineage, kLineage, Durability::kStrict));
    EXPECT_EQ(SyncsOf("dense.1", [&] { EXPECT_OK(SealNumber(*state, 1)); }), mutated ? 0 : 1);
    EXPECT_EQ(Reopened(directory.Path()), Describe(*state));
  }
}

}  // namespace
}  // namespace terse

#endif  // TERSE_FAULTS
