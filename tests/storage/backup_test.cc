// Copies of a run that goes on, and what makes a copy a run of its own.
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "core/file_system.h"
#include "storage/module_file.h"
#include "tests/storage/faulty_files.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = RunStore::Open(directory_.Path("run")).value();
    ASSERT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
  }
  std::string CopyPath() const { return directory_.Path("copies/monday"); }

  TempDirectory directory_;
  std::unique_ptr<RunStore> store_;
};

TEST_F(BackupTest, TheCopyIsTheRunWithItsNewestCheckpoint) {
  for (int64_t round = 1; round <= 5; ++round) ASSERT_OK(RunRound(*store_, round));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(2), 3));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(4), 3));
  ASSERT_OK(store_->Backup(CopyPath()));
  EXPECT_THAT(*PosixFiles().List(CopyPath()), ElementsAre("checkpoints", "run.sqlite"));
  EXPECT_THAT(*PosixFiles().List(CopyPath() + "/checkpoints"), ElementsAre("0000000004.ckpt"));
  EXPECT_CODE(store_->Backup(CopyPath()), kFailedPrecondition, "holds files already");
  EXPECT_CODE(store_->Backup(directory_.Path("run")), kFailedPrecondition, "holds files already");

  ASSERT_OK(RunRound(*store_, 6));  // the run goes on, the copy does not
  auto copy = RunStore::Open(CopyPath()).value();
  EXPECT_THAT(DumpTables(CopyPath()), ::testing::HasSubstr("checkpoints\n|4|"));
  EXPECT_EQ(copy->GetHead()->version, 5);
  EXPECT_EQ(copy->GetHead()->model_hash, TestHash(5));
  EXPECT_EQ((*copy->Run())->lineage, TestRun(4).lineage);
  EXPECT_EQ(copy->ReadNewestCheckpoint()->weights, TestWeights(4));
  EXPECT_EQ(copy->ReadLog(4, 5)->back().model_hash, TestHash(5));
  EXPECT_OK(RunRound(*copy, 6));
}

TEST_F(BackupTest, TheCopyHasTheRunsTorchScriptFile) {
  ASSERT_OK(WriteModule(PosixFiles(), directory_.Path("run"), kTorchScriptModel, "module"));
  ASSERT_OK(store_->Backup(CopyPath()));
  EXPECT_THAT(*PosixFiles().List(CopyPath()), ElementsAre("checkpoints", "module.pt", "run.sqlite"));
  EXPECT_EQ(*PosixFiles().Read(CopyPath() + "/module.pt"), "module");
}

// A checkpoint that waits for a copy of gigabytes holds up the background worker, and that the engine.
TEST_F(BackupTest, ACheckpointIsWrittenWhileItCopies) {
  FaultyFiles files;
  store_.reset();
  store_ = RunStore::Open(directory_.Path("run"), files).value();
  for (int64_t round = 1; round <= 4; ++round) ASSERT_OK(RunRound(*store_, round));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(2), 1));
  absl::Notification written;
  std::thread others;
  files.on_change = [&](const std::string& path) {
    if (!absl::StrContains(path, "copies/monday") || !absl::StrContains(path, ".ckpt") || others.joinable()) return;
    others = std::thread([&] {
      EXPECT_OK(RunRound(*store_, 5));
      EXPECT_OK(store_->WriteCheckpoint(TestCheckpoint(5), 1));
      written.Notify();
    });
    EXPECT_TRUE(written.WaitForNotificationWithTimeout(absl::Seconds(10))) << "it waits until the copy is made";
  };
  EXPECT_OK(store_->Backup(CopyPath()));
  ASSERT_TRUE(others.joinable());
  others.join();
  // The copy is of one moment, though its checkpoint is retired now and the log pruned.
  auto copy = RunStore::Open(CopyPath()).value();
  EXPECT_EQ(copy->GetHead()->version, 4);
  EXPECT_EQ(copy->ReadNewestCheckpoint()->version, 2);
  EXPECT_EQ(copy->ReadLog(2, 4)->back().model_hash, TestHash(4));
}

TEST_F(BackupTest, TakenWhileRoundsCommit) {
  constexpr int64_t kBackups = 8;
  std::atomic<bool> done{false};
  std::thread rounds([&] {
    for (int64_t round = 1; !done; ++round) {
      ASSERT_OK(RunRound(*store_, round));
      if (round % 5 == 0) {
        ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(round), 1));
      }
    }
  });
  int64_t version = 0;
  for (int64_t i = 0; i < kBackups; ++i) {
    const std::string path = directory_.Path(absl::StrCat("copy", i));
    while (store_->GetHead()->version < version + 3) std::this_thread::yield();
    EXPECT_OK(store_->Backup(path));
    auto copy = RunStore::Open(path).value();
    const Head head = *copy->GetHead();
    EXPECT_GT(head.version, version);
    version = head.version;
    const auto checkpoint = copy->ReadNewestCheckpoint();
    ASSERT_OK(checkpoint.status());
    const auto log = copy->ReadLog(checkpoint->version, head.version);
    ASSERT_OK(log.status());
    EXPECT_EQ(log->empty() ? checkpoint->model_hash : log->back().model_hash, head.model_hash);
    EXPECT_EQ(copy->GetClient(0)->updates_applied, head.version);
  }
  done = true;
  rounds.join();
}

TEST_F(BackupTest, ADamagedCheckpointIsNotCopied) {
  ASSERT_OK(RunRound(*store_, 1));
  ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(1), 2));
  std::filesystem::resize_file(directory_.Path("run/checkpoints/0000000001.ckpt"), 20);
  ASSERT_OK(store_->Backup(CopyPath()));
  EXPECT_EQ(RunStore::Open(CopyPath()).value()->ReadNewestCheckpoint()->version, 0);
}

TEST_F(BackupTest, AFailedBackupLeavesRoomForTheNext) {
  ASSERT_OK(RunRound(*store_, 1));
  ASSERT_OK(WriteModule(PosixFiles(), directory_.Path("run"), kTorchScriptModel, "module"));
  int n = 0;
  for (bool failed = true; failed;) {
    ++n;
    ASSERT_LT(n, 200);
    failed = false;
    {
      int left = n;
      const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
        if (call == "sync") return kSkipCall;
        if (call != "write" || !absl::StrContains(path, "copies/monday") || --left != 0) return 0;
        failed = true;
        return ENOSPC;
      });
      const absl::Status status = store_->Backup(CopyPath());
      EXPECT_TRUE(failed ? IsDiskTrouble(status) : status.ok()) << status;
    }
    EXPECT_OK(store_->RecordReset(0));  // the run goes on
  }
  EXPECT_GT(n, 5);
  EXPECT_EQ(RunStore::Open(CopyPath()).value()->GetHead()->version, 1);
}

TEST_F(BackupTest, AFailedSyncStopsTheStore) {
  {
    const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
      return call == "sync" && absl::EndsWith(path, ".ckpt.tmp") ? EIO : 0;
    });
    EXPECT_TRUE(IsSyncFailure(store_->Backup(CopyPath())));
  }
  EXPECT_CODE(store_->OpenRound(1, 0, 1), kUnknown, "restart the coordinator");
}

TEST_F(BackupTest, ANewLineageHasClientsWithoutAPast) {
  ASSERT_OK(RunRound(*store_, 1));
  ASSERT_OK(store_->CompactHistory(0, 1, "state"));
  ASSERT_OK(RunRound(*store_, 2));
  ASSERT_OK(store_->RegisterClient("b", 1).status());
  ASSERT_OK(store_->OpenRound(3, 2, 1));
  ASSERT_OK(store_->Backup(CopyPath()));
  ASSERT_OK(StartNewLineage(CopyPath()));
  auto copy = RunStore::Open(CopyPath()).value();
  EXPECT_EQ(copy->ReadHistory(0)->count(), 0);
  EXPECT_EQ(store_->ReadHistory(0)->count(), 2);
  EXPECT_EQ(store_->ReadHistory(0)->messages, 1);
  EXPECT_NE((*copy->Run())->lineage, TestRun(4).lineage);
  EXPECT_FALSE((*copy->Run())->lineage.IsZero());
  EXPECT_EQ((*copy->Run())->name, "mnist");
  EXPECT_EQ(copy->GetHead()->version, 2);
  EXPECT_EQ(copy->ReadNewestCheckpoint()->version, 0);
  const auto clients = copy->Clients();
  for (const ClientRecord& client : *clients) EXPECT_TRUE(client.last_applied.IsZero());
  EXPECT_EQ(copy->Clients()->size(), 2);
  EXPECT_EQ((*copy->LastRound())->state, RoundState::kAborted);
  ASSERT_EQ(copy->Events(10)->size(), 2);
  EXPECT_EQ(copy->Events(10)->at(0).kind, "round_aborted");
  EXPECT_EQ(copy->Events(10)->at(0).round, 3);
  EXPECT_EQ(copy->Events(10)->at(1).kind, "lineage_started");
  // The copy goes on from zero; the original is what it was.
  EXPECT_OK(copy->OpenRound(4, 2, 1));
  EXPECT_CODE(copy->CloseRound(4, {TestUpdate(0, 4, TestUpdate(0, 2, Id128()).update_id)}, 1), kFailedPrecondition,
              "must reset");
  EXPECT_OK(copy->CloseRound(4, {TestUpdate(0, 4, Id128())}, 1));
  EXPECT_EQ((*store_->Run())->lineage, TestRun(4).lineage);
  EXPECT_EQ((*store_->LastRound())->state, RoundState::kOpen);
}

TEST_F(BackupTest, OnlyARunThatNobodyHoldsGetsANewLineage) {
  EXPECT_CODE(StartNewLineage(directory_.Path("run")), kFailedPrecondition, "in use by another process");
  EXPECT_CODE(StartNewLineage(directory_.Path("nothing")), kNotFound, "holds no run");
  EXPECT_FALSE(std::filesystem::exists(directory_.Path("nothing")));
  RunStore::Open(directory_.Path("empty")).value().reset();
  EXPECT_CODE(StartNewLineage(directory_.Path("empty")), kNotFound, "holds no run");
}

}  // namespace
}  // namespace terse
