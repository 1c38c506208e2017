// Kills between any two steps, checkpoints, the log's pruning, and damaged files.
#include <fstream>
#include <functional>

#include "core/file_system.h"
#include "tests/storage/storage_testing.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<RunStore> OpenStore(const std::string& directory) {
  auto store = RunStore::Open(directory);
  EXPECT_OK(store.status());
  return store.ok() ? *std::move(store) : nullptr;
}

void FlipByte(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const char byte = static_cast<char>(file.get());
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x40));
}

struct Expected {
  int64_t version;
  absl::optional<RoundState> last_round;  // after the restart
  Id128 last_applied;                     // of client 0
};

// After every step the directory is copied as a kill would leave it, and the copy opened.
TEST(RunStoreRecovery, EveryStepSurvivesAKill) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  const Id128 first = TestUpdate(0, 1, Id128()).update_id;
  Commit second = TestCommit(3);
  second.base_version = 1;
  const std::pair<std::function<absl::Status()>, Expected> steps[] = {
      {[&] { return store->CreateRun(TestRun(4), TestWeights(0)); }, {0, absl::nullopt, Id128()}},
      {[&] { return store->RegisterClient("a", 1).status(); }, {0, absl::nullopt, Id128()}},
      {[&] { return store->OpenRound(1, 0, 1); }, {0, RoundState::kOpen, Id128()}},
      {[&] { return store->CloseRound(1, {TestUpdate(0, 1, Id128())}, 1); }, {0, RoundState::kAborted, Id128()}},
      {[&] { return store->CommitRound(TestCommit(1), true); }, {1, RoundState::kOpen, first}},
      {[&] { return store->AbortRound(2, "deadline", 1); }, {1, RoundState::kAborted, first}},
      {[&] { return store->OpenRound(3, 1, 1); }, {1, RoundState::kOpen, first}},
      {[&] { return store->CloseRound(3, {TestUpdate(0, 3, first)}, 1); }, {1, RoundState::kAborted, first}},
      {[&] { return store->CommitRound(second, false); },
       {2, RoundState::kCommitted, TestUpdate(0, 3, first).update_id}},
  };
  int step_number = 0;
  for (const auto& [step, expected] : steps) {
    SCOPED_TRACE(++step_number);
    ASSERT_OK(step());
    TempDirectory copy;
    CopyDirectory(directory.Path(), copy.Path());
    auto restarted = OpenStore(copy.Path());
    ASSERT_NE(restarted, nullptr);
    EXPECT_EQ(restarted->GetHead()->version, expected.version);
    EXPECT_EQ(restarted->GetHead()->epoch, 2);
    const auto last = *restarted->LastRound();
    EXPECT_EQ(last.has_value(), expected.last_round.has_value());
    if (last) {
      EXPECT_EQ(last->state, *expected.last_round);
    }
    if (step_number > 1) {
      EXPECT_EQ(restarted->GetClient(0)->last_applied, expected.last_applied);
    }
    const bool was_closed = step_number == 4 || step_number == 8;
    if (was_closed) {
      EXPECT_EQ(restarted->Events(1)->at(0).kind, "round_aborted");
      EXPECT_CODE(restarted->CommitRound(TestCommit(1), false), kFailedPrecondition, "not closed");
    }
    // The next round goes on from there.
    if (last && last->state != RoundState::kOpen) {
      EXPECT_OK(restarted->OpenRound(last->id + 1, expected.version, 1));
    }
  }
}

TEST(RunStoreRecovery, TheHeadIsACheckpointAndTheLog) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  for (int64_t round = 1; round <= 5; ++round) ASSERT_OK(RunRound(*store, round));
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(3), 2));
  store.reset();
  store = OpenStore(directory.Path());
  const auto checkpoint = store->ReadNewestCheckpoint();
  ASSERT_OK(checkpoint.status());
  EXPECT_EQ(checkpoint->version, 3);
  EXPECT_EQ(checkpoint->weights, TestWeights(3));
  const auto log = store->ReadLog(3, store->GetHead()->version);
  ASSERT_OK(log.status());
  ASSERT_EQ(log->size(), 2);
  EXPECT_EQ(log->back().model_hash, store->GetHead()->model_hash);
}

TEST(RunStoreRecovery, CheckpointsAreKeptAndTheLogIsPruned) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  for (int64_t round = 1; round <= 50; ++round) ASSERT_OK(RunRound(*store, round));
  EXPECT_EQ(store->ReadLog(0, 50)->size(), 50);
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(40), 2));  // 0 and 40 are kept
  EXPECT_EQ(store->ReadLog(0, 50)->size(), 50);
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(49), 2));  // 40 and 49
  EXPECT_THAT(*PosixFiles().List(directory.Path("checkpoints")), ElementsAre("0000000040.ckpt", "0000000049.ckpt"));
  EXPECT_EQ(store->ReadLog(40, 50)->size(), 10);
  EXPECT_EQ(store->ReadLog(40, 50)->front().version, 41);
  EXPECT_CODE(store->ReadLog(39, 50).status(), kOutOfRange, "no longer reaches back to version 39; it begins after 40");
  EXPECT_CODE(store->ReadLog(0, 3).status(), kOutOfRange, "use a checkpoint");
  EXPECT_EQ(store->ReadLog(50, 50)->size(), 0);
  EXPECT_EQ(store->ReadLog(45, 47)->size(), 2);
  const int64_t two = 2 * static_cast<int64_t>(store->ReadLog(45, 46)->front().downstream.size());
  EXPECT_EQ(store->ReadLogPart(45, 50, two)->size(), 2);
  EXPECT_EQ(store->ReadLogPart(45, 50, two - 1)->size(), 1);
  EXPECT_EQ(store->ReadLogPart(45, 50, 0)->size(), 1);
  EXPECT_EQ(store->ReadLogPart(45, 46, 0)->size(), 1);
  EXPECT_CODE(store->ReadLogPart(39, 50, 0).status(), kOutOfRange, "use a checkpoint");
  EXPECT_CODE(store->ReadLogPart(50, 51, 0).status(), kInvalidArgument, "the head is 50");
  EXPECT_CODE(store->ReadLog(50, 51).status(), kInvalidArgument, "the head is 50");
  EXPECT_CODE(store->ReadLog(-1, 50).status(), kInvalidArgument, "from version -1");
  EXPECT_CODE(store->ReadLog(48, 47).status(), kInvalidArgument, "from version 48 to 47");
  EXPECT_EQ(*store->LogBytes(40), 10 * 10);  // "message 41"
  EXPECT_EQ(*store->LogBytes(50), 0);
  EXPECT_CODE(store->LogBytes(39).status(), kOutOfRange, "version 39");
  EXPECT_CODE(store->LogBytes(51).status(), kInvalidArgument, "the head is 50");
  const auto newest = store->NewestCheckpointFile();
  ASSERT_OK(newest.status());
  EXPECT_EQ(newest->version, 49);
  EXPECT_EQ(newest->model_hash, TestHash(49));
  EXPECT_EQ(PosixFiles().Read(newest->path)->size(), newest->bytes);
}

// Messages that the newest checkpoint does not need are kept as long as they are fewer bytes than it is.
TEST(RunStoreRecovery, TheLogIsKeptAsFarAsItIsCheaperThanACheckpoint) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  constexpr size_t kParameters = 600;
  ASSERT_OK(store->CreateRun(TestRun(kParameters), TestWeights(0, kParameters)));
  for (int64_t round = 1; round <= 300; ++round) {
    ASSERT_OK(store->OpenRound(round, round - 1, 1));
    ASSERT_OK(store->CloseRound(round, {}, 1));
    Commit commit = TestCommit(round);
    commit.downstream = "ten bytes.";
    commit.model_hash = HashWeights(TestWeights(round, kParameters));
    ASSERT_OK(store->CommitRound(commit, false));
  }
  const Checkpoint newest{300, HashWeights(TestWeights(300, kParameters)), TestWeights(300, kParameters)};
  const int64_t bytes = static_cast<int64_t>(SerializeCheckpoint(newest).size());
  ASSERT_EQ(bytes, 2456);  // 245 messages
  ASSERT_OK(store->WriteCheckpoint(newest, 1));
  EXPECT_EQ(store->NewestCheckpointFile()->bytes, bytes);
  EXPECT_EQ(*store->LogBytes(300 - 245), 2450);
  EXPECT_CODE(store->LogBytes(300 - 246).status(), kOutOfRange, "begins after 55");
  EXPECT_CODE(store->ReadLog(0, 300).status(), kOutOfRange, "begins after 55");
  EXPECT_EQ(store->ReadLog(100, 300)->size(), 200);

  // A message that is too large by itself ends it.
  ASSERT_OK(store->OpenRound(301, 300, 1));
  ASSERT_OK(store->CloseRound(301, {}, 1));
  Commit large = TestCommit(301);
  large.model_hash = HashWeights(TestWeights(301, kParameters));
  large.downstream.assign(static_cast<size_t>(bytes) + 1, 'x');
  ASSERT_OK(store->CommitRound(large, false));
  ASSERT_OK(store->WriteCheckpoint({301, large.model_hash, TestWeights(301, kParameters)}, 1));
  EXPECT_CODE(store->LogBytes(300).status(), kOutOfRange, "begins after 301");
}

TEST(RunStoreRecovery, OnlyCommittedVersionsBecomeCheckpoints) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  EXPECT_CODE(store->WriteCheckpoint(TestCheckpoint(0), 1), kFailedPrecondition, "not committed");
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  for (int64_t round = 1; round <= 2; ++round) ASSERT_OK(RunRound(*store, round));
  Checkpoint other = TestCheckpoint(9);
  EXPECT_CODE(store->WriteCheckpoint(other, 1), kFailedPrecondition, "the head is 2");
  for (int64_t version : {1, 2}) {
    other.version = version;
    EXPECT_CODE(store->WriteCheckpoint(other, 1), kFailedPrecondition, "was committed with hash");
  }
  other.model_hash = TestHash(2);
  EXPECT_CODE(store->WriteCheckpoint(other, 1), kInvalidArgument, "its hash");
  EXPECT_CODE(store->WriteCheckpoint(TestCheckpoint(2), 0), kInvalidArgument, "at least 1");
  EXPECT_THAT(*PosixFiles().List(directory.Path("checkpoints")), ElementsAre("0000000000.ckpt"));
}

TEST(RunStoreRecovery, ADamagedNewestCheckpointFallsBackToTheOneBefore) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  for (int64_t round = 1; round <= 4; ++round) ASSERT_OK(RunRound(*store, round));
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(2), 2));
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(4), 2));
  const std::string newest = directory.Path("checkpoints/0000000004.ckpt");
  FlipByte(newest, 45);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(store->ReadNewestCheckpoint()->version, 2);
    EXPECT_EQ(store->NewestCheckpointFile()->version, 2);
  }
  ASSERT_EQ(store->Events(10)->size(), 1);
  EXPECT_EQ(store->Events(10)->at(0).kind, "checkpoint_damaged");
  EXPECT_THAT(store->Events(10)->at(0).detail, ::testing::HasSubstr(newest));
  EXPECT_EQ(store->ReadLog(2, 4)->size(), 2);

  FlipByte(newest, 45);  // repaired
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 4);
  EXPECT_EQ(store->NewestCheckpointFile()->version, 4);

  std::filesystem::resize_file(newest, 50);
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 2);
  // A damaged one does not count among those that are kept.
  ASSERT_OK(RunRound(*store, 5));
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(5), 2));
  EXPECT_EQ(store->ReadLog(2, 5)->size(), 3);

  const std::vector<std::string> names = *PosixFiles().List(directory.Path("checkpoints"));
  for (const std::string& name : names) {
    std::filesystem::remove(directory.Path("checkpoints/" + name));
  }
  EXPECT_CODE(store->ReadNewestCheckpoint().status(), kDataLoss, "no whole checkpoint");
  EXPECT_CODE(store->NewestCheckpointFile().status(), kNotFound, "no checkpoint");
}

TEST(RunStoreRecovery, AnotherVersionsFileIsNotTakenForThisOne) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  ASSERT_OK(RunRound(*store, 1));
  ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(1), 2));
  std::filesystem::copy_file(directory.Path("checkpoints/0000000000.ckpt"),
                             directory.Path("checkpoints/0000000001.ckpt"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 0);
}

TEST(RunStoreRecovery, OpenRemovesOrphansAndLeavesOthersFiles) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  store.reset();
  for (const char* name : {"0000000007.ckpt", "0000000000.ckpt.tmp", "0000000008.ckpt.tmp", "notes.txt", "x.ckpt"}) {
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory.Path(absl::StrCat("checkpoints/", name)), {"x"}));
  }
  store = OpenStore(directory.Path());
  EXPECT_THAT(*PosixFiles().List(directory.Path("checkpoints")), ElementsAre("0000000000.ckpt", "notes.txt", "x.ckpt"));
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 0);
}

TEST(RunStoreRecovery, AGapInTheLogIsDamage) {
  TempDirectory directory;
  auto store = OpenStore(directory.Path());
  ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
  for (int64_t round = 1; round <= 3; ++round) ASSERT_OK(RunRound(*store, round));
  auto db = SqliteDb::Open(directory.Path("run.sqlite"), SqliteDb::Mode::kWriter);
  ASSERT_OK((*db)->Script("DELETE FROM downstream_log WHERE version = 2"));
  EXPECT_CODE(store->ReadLog(0, 3).status(), kDataLoss, "lacks a log message");
  EXPECT_CODE(store->LogBytes(0).status(), kDataLoss, "lacks a log message");
}

}  // namespace
}  // namespace terse
