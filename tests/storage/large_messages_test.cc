// Messages of commits above and below the limit of a row: they read alike, are durable with their commit, and go with
// the log.
#include <atomic>
#include <fstream>
#include <thread>

#include "core/random.h"
#include "tests/storage/faulty_files.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"
#include "tests/testing/memory_disk.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::StatusOr<std::unique_ptr<RunStore>> OpenSmall(const std::string& directory, FileSystem& files = PosixFiles(),
                                                    RunStore::Depth depth = RunStore::Depth::kRecent) {
  return RunStore::Open(directory, files, depth, kSmallLimits);
}

// Odd versions have large messages.
std::string MessageOfVersion(int64_t version) {
  return version % 2 == 1 ? LargeMessage(version) : absl::StrCat("small ", version);
}

absl::Status RunMixedRound(RunStore& store, int64_t round) { return RunRound(store, round, MessageOfVersion(round)); }

class LargeMessagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = OpenSmall(path_).value();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    for (int64_t round = 1; round <= 6; ++round) ASSERT_OK(RunMixedRound(*store_, round));
  }
  absl::Status Reopen(RunStore::Depth depth = RunStore::Depth::kRecent) {
    store_.reset();
    auto store = OpenSmall(path_, PosixFiles(), depth);
    if (!store.ok()) return store.status();
    store_ = *std::move(store);
    return absl::OkStatus();
  }
  static void ExpectLog(RunStore& store, int64_t after, int64_t up_to) {
    const auto log = store.ReadLog(after, up_to);
    ASSERT_OK(log.status());
    ASSERT_EQ(static_cast<int64_t>(log->size()), up_to - after);
    for (const LogMessage& message : *log) {
      EXPECT_EQ(message.downstream, MessageOfVersion(message.version));
      EXPECT_EQ(message.model_hash, TestHash(message.version));
    }
  }
  std::vector<std::string> Segments() const {
    return PosixFiles().List(segments_).value_or(std::vector<std::string>());
  }
  void Flip(const std::string& segment, size_t at) const {
    std::string bytes = PosixFiles().Read(segments_ + "/" + segment).value();
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::ofstream(segments_ + "/" + segment, std::ios::binary | std::ios::trunc) << bytes;
  }

  const SystemCallWatch watch_{SkipSync};
  const TempDirectory directory_;
  const std::string path_ = directory_.Path("run"), segments_ = path_ + "/segments";
  std::unique_ptr<RunStore> store_;
};

TEST_F(LargeMessagesTest, ReadAsSmallOnesDo) {
  EXPECT_THAT(Segments(), ElementsAre("0000000001.seg"));
  EXPECT_EQ(std::filesystem::file_size(segments_ + "/0000000001.seg"), 96) << "the small ones stand in their rows";
  ExpectLog(*store_, 0, 6);
  EXPECT_EQ(*store_->LogBytes(3), 2 * 7 + 32);
  EXPECT_EQ(store_->ReadLogPart(0, 6, 1)->size(), 1u) << "at least one";
  EXPECT_EQ(store_->ReadLogPart(0, 6, 32 + 7 + 31)->size(), 2u);
  EXPECT_EQ(store_->ReadLogPart(0, 6, 32 + 7 + 32)->size(), 3u);
  ASSERT_OK(Reopen());
  ExpectLog(*store_, 0, 6);
  ASSERT_OK(RunMixedRound(*store_, 7));
  EXPECT_THAT(Segments(), ElementsAre("0000000001.seg", "0000000002.seg"));
  ExpectLog(*store_, 0, 7);
}

TEST_F(LargeMessagesTest, OfAServerWithAStateDoToo) {
  ASSERT_OK(store_->OpenRound(7, 6, 1));
  ASSERT_OK(store_->CloseRound(7, {}, 2));
  Commit commit = TestCommit(7);
  commit.aggregate = LargeMessage(77);
  ASSERT_OK(store_->CommitRound(commit, false));
  EXPECT_EQ(*store_->ReadAggregate(7), LargeMessage(77));
  ASSERT_OK(Reopen(RunStore::Depth::kEverything));
  EXPECT_EQ(*store_->ReadAggregate(7), LargeMessage(77));
}

TEST_F(LargeMessagesTest, AreSyncedOnceBeforeTheCommitThatNamesThem) {
  std::vector<std::string> synced;
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(RunMixedRound(*store_, 7));
  ASSERT_OK(RunMixedRound(*store_, 8));
  {
    const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
      if (call == "sync") synced.push_back(path.substr(path.find_last_of('/') + 1));
      return call == "sync" ? kSkipCall : 0;
    });
    ExpectLog(*store_, 4, 8);  // the thread of the batch reads what it wrote
    EXPECT_THAT(synced, IsEmpty());
    ASSERT_OK(store_->CommitBatch());
  }
  EXPECT_THAT(synced, ElementsAre("0000000002.seg", "segments", "run.sqlite-wal"));
}

TEST_F(LargeMessagesTest, OfADroppedBatchAreOnlyGarbage) {
  const std::string before = DumpTables(path_);
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(RunMixedRound(*store_, 7));
  store_->DropBatch();
  EXPECT_EQ(DumpTables(path_), before);
  EXPECT_EQ(Segments().size(), 2u);
  ASSERT_OK(RunMixedRound(*store_, 7));
  ExpectLog(*store_, 0, 7);
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(RunMixedRound(*store_, 8));
  ASSERT_OK(RunMixedRound(*store_, 9));
  ASSERT_OK(RunMixedRound(*store_, 10));
  ASSERT_OK(RunMixedRound(*store_, 11));
  EXPECT_EQ(Segments().size(), 3u);
  store_->DropBatch();
  ASSERT_OK(Reopen(RunStore::Depth::kEverything));
  EXPECT_THAT(Segments(), ElementsAre("0000000001.seg", "0000000002.seg")) << "no row names the third";
  ExpectLog(*store_, 0, 7);
}

TEST_F(LargeMessagesTest, AFailedWriteChangesNothingAndAFailedSyncStopsTheStore) {
  ASSERT_OK(store_->OpenRound(7, 6, 1));
  ASSERT_OK(store_->CloseRound(7, {}, 2));
  Commit commit = TestCommit(7);
  commit.downstream = LargeMessage(7);
  const std::string closed = DumpTables(path_);
  const auto commit_with = [&](absl::string_view failing, int error) {
    const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
      if (call == failing && absl::EndsWith(path, ".seg")) return error;
      return call == "sync" ? kSkipCall : 0;
    });
    return store_->CommitRound(commit, false);
  };
  EXPECT_TRUE(absl::IsResourceExhausted(commit_with("write", ENOSPC)));
  EXPECT_TRUE(absl::IsUnavailable(commit_with("write", EIO)));
  EXPECT_EQ(DumpTables(path_), closed);
  EXPECT_TRUE(IsSyncFailure(commit_with("sync", EIO)));
  EXPECT_EQ(DumpTables(path_), closed);
  EXPECT_CODE(store_->CommitRound(commit, false), kUnknown, "restart the coordinator");
  EXPECT_CODE(store_->RecordReset(0), kUnknown, "restart the coordinator");
  ExpectLog(*store_, 0, 6);
  ASSERT_OK(Reopen(RunStore::Depth::kEverything));
  EXPECT_EQ(store_->GetHead()->version, 6);
  ASSERT_OK(store_->OpenRound(8, 6, 1));
}

TEST_F(LargeMessagesTest, GoWithTheLog) {
  for (int64_t round = 7; round <= 20; ++round) ASSERT_OK(RunMixedRound(*store_, round));
  EXPECT_EQ(Segments().size(), 4u);  // ten messages of 32 bytes, three a segment
  // The log goes back as far as its messages have no more than the 72 bytes of a checkpoint: 8, 32 and 8 of them.
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(20), 1));
  EXPECT_THAT(Segments(), ElementsAre("0000000004.seg"));
  ExpectLog(*store_, 17, 20);
  EXPECT_CODE(store_->ReadLog(0, 20).status(), kOutOfRange, "no longer reaches back");
  ASSERT_OK(Reopen(RunStore::Depth::kEverything));
  EXPECT_THAT(Segments(), ElementsAre("0000000004.seg"));
  ExpectLog(*store_, 17, 20);
}

// A reader sees the log as it was when the read began, although its segments may be pruned meanwhile.
TEST_F(LargeMessagesTest, AreReadWhileTheLogIsPruned) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const int64_t head = store_->GetHead()->version;
      const auto log = store_->ReadLog(head - 6, head);
      EXPECT_TRUE(log.ok() || absl::IsOutOfRange(log.status())) << log.status();
    }
  });
  for (int64_t round = 7; round <= 1000; ++round) {
    EXPECT_OK(RunMixedRound(*store_, round));
    if (round % 2 == 1) continue;
    EXPECT_OK(store_->WriteCheckpoint(TestCheckpoint(round), 1 + round % 4));
  }
  done = true;
  reader.join();
}

TEST_F(LargeMessagesTest, AMissingOrShortSegmentIsFoundAtOpening) {
  const std::string segment = segments_ + "/0000000001.seg";
  store_.reset();
  TempDirectory copy;
  for (const bool missing : {true, false}) {
    CopyDirectory(path_, copy.Path("run"));
    if (missing) {
      std::filesystem::remove(copy.Path("run/segments/0000000001.seg"));
    } else {
      std::filesystem::resize_file(copy.Path("run/segments/0000000001.seg"), 95);
    }
    // A store that was closed in order looks at its newest version alone, which has no large message.
    const auto store = OpenSmall(copy.Path("run")).value();
    EXPECT_CODE(store->ReadLog(4, 6).status(), kDataLoss, copy.Path("run/segments/0000000001.seg"));
    ExpectLog(*store, 5, 6);
    EXPECT_OK(store->ReadLog(missing ? 5 : 0, missing ? 6 : 4).status());
  }
  ASSERT_OK(Reopen());
  ASSERT_OK(RunMixedRound(*store_, 7));
  store_.reset();
  for (const bool missing : {true, false}) {
    CopyDirectory(path_, copy.Path("run"));
    const std::string newest = copy.Path("run/segments/0000000002.seg");
    if (missing) {
      std::filesystem::remove(newest);
    } else {
      std::filesystem::resize_file(newest, 31);
    }
    const absl::Status status = OpenSmall(copy.Path("run")).status();
    EXPECT_CODE(status, kDataLoss, newest + (missing ? " is missing" : " is damaged"));
    EXPECT_CODE(status, kDataLoss, "tersectl restore BACKUP --state DIR");
  }
}

TEST_F(LargeMessagesTest, AFlippedBitIsFoundWhenItIsReadAndByTheFullCheck) {
  store_.reset();
  Flip("0000000001.seg", 40);  // of version 3
  ASSERT_OK(Reopen());
  EXPECT_OK(store_->ReadLog(3, 6).status());
  EXPECT_CODE(store_->ReadLog(2, 6).status(), kDataLoss, segments_ + "/0000000001.seg is damaged: the 32 bytes at 32");
  EXPECT_CODE(Reopen(RunStore::Depth::kEverything), kDataLoss, segments_ + "/0000000001.seg is damaged");
  EXPECT_OK(Reopen(RunStore::Depth::kDatabase)) << "the database is whole";
}

TEST_F(LargeMessagesTest, AreInABackup) {
  const std::string copy = directory_.Path("copies/monday");
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(2), 3));
  // A message that no row names is not missed in the copy.
  ASSERT_OK(store_->BeginBatch());
  ASSERT_OK(RunMixedRound(*store_, 7));
  store_->DropBatch();
  ASSERT_OK(store_->Backup(copy));
  EXPECT_THAT(*PosixFiles().List(copy + "/segments"), ElementsAre("0000000001.seg"));
  EXPECT_CODE(store_->Backup(copy), kFailedPrecondition, "holds files already");
  ASSERT_OK(StartNewLineage(copy));
  const auto restored = OpenSmall(copy, PosixFiles(), RunStore::Depth::kEverything).value();
  ExpectLog(*restored, 0, 6);
  ASSERT_OK(restored->OpenRound(7, 6, 1));
  ExpectLog(*store_, 0, 6);
}

TEST_F(LargeMessagesTest, AFailedBackupLeavesRoomForTheNext) {
  const std::string copy = directory_.Path("copies/monday");
  for (int attempt = 0; attempt < 2; ++attempt) {
    bool failed = false;
    {
      const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
        if (call == "sync") return kSkipCall;
        if (call != "write" || !absl::StrContains(path, "monday/segments")) return 0;
        failed = true;
        return ENOSPC;
      });
      EXPECT_TRUE(absl::IsResourceExhausted(store_->Backup(copy)));
    }
    EXPECT_TRUE(failed);
  }
  ASSERT_OK(store_->Backup(copy));
  ExpectLog(*OpenSmall(copy).value(), 0, 6);
}

// A backup copies for as long as it takes. Meanwhile the log is pruned, and its segments stay until the copy is made.
TEST_F(LargeMessagesTest, StayWhileABackupCopiesThem) {
  FaultyFiles files;
  store_.reset();
  store_ = OpenSmall(path_, files).value();
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(6), 1));
  for (int64_t round = 7; round <= 12; ++round) ASSERT_OK(RunMixedRound(*store_, round));
  bool is_copying = false;
  files.on_change = [&](const std::string& path) {
    if (is_copying || !absl::StrContains(path, "monday/segments")) return;
    is_copying = true;
    for (int64_t round = 13; round <= 24; ++round) EXPECT_OK(RunMixedRound(*store_, round));
    EXPECT_OK(store_->WriteCheckpoint(TestCheckpoint(24), 1));
    EXPECT_CODE(store_->ReadLog(10, 12).status(), kOutOfRange, "no longer reaches back");
  };
  const std::string copy = directory_.Path("copies/monday");
  EXPECT_OK(store_->Backup(copy));
  EXPECT_TRUE(is_copying);
  const auto restored = OpenSmall(copy, PosixFiles(), RunStore::Depth::kEverything).value();
  EXPECT_EQ(restored->GetHead()->version, 12);
  ExpectLog(*restored, 6, 12);
  const size_t held = Segments().size();
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(24), 1));
  EXPECT_LT(Segments().size(), held);
}

// A commit is on the disk with its message and its row. Fails without SyncSegments.
TEST(LargeMessagesOnADisk, SurviveAPowerLossWithTheirCommit) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    MemoryDisk disk(seed);
    Random random(seed);
    auto store = OpenSmall("/run", disk).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    const int64_t rounds = 1 + static_cast<int64_t>(seed % 9);
    for (int64_t round = 1; round <= rounds; ++round) {
      const bool batched = round % 3 == 0;
      ASSERT_OK(batched ? store->BeginBatch() : absl::OkStatus());
      ASSERT_OK(RunMixedRound(*store, round));
      ASSERT_OK(batched ? store->CommitBatch() : absl::OkStatus());
    }
    disk.LosePower(&random);
    store.reset();
    disk.Start();
    const auto found = OpenSmall("/run", disk, RunStore::Depth::kEverything);
    ASSERT_OK(found.status());
    EXPECT_EQ((*found)->GetHead()->version, rounds);
    const auto log = (*found)->ReadLog(0, rounds);
    ASSERT_OK(log.status());
    for (const LogMessage& message : *log) EXPECT_EQ(message.downstream, MessageOfVersion(message.version));
  }
}

}  // namespace
}  // namespace terse
