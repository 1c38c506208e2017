// tersectl backup and restore with a bucket: what arrives, what is refused, and what no restore takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/file_system.h"
#include "proto/backup_hash.h"
#include "storage/run_store.h"
#include "tests/tersectl/fake_bucket.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr char kAddress[] = "s3://models/backups/monday";

// A run of a coordinator that serves it as a backup.
class BucketBackupTest : public ::testing::Test {
 protected:
  BucketBackupTest() {
    const std::string run = directory_.path() + "/run";
    MakeRun(run);
    std::vector<v1::BackupChunk> chunks;
    BackupHash hash;
    for (const char* name : {"run.sqlite", "checkpoints/0000000000.ckpt"}) {
      v1::BackupChunk& chunk = chunks.emplace_back();
      const std::string bytes = PosixFiles().Read(run + "/" + name).value();
      chunk.set_name(name);
      chunk.set_size(bytes.size());
      chunk.set_data(bytes);
      hash.Add(chunk);
    }
    chunks.emplace_back().set_hash(hash.ToBytes());
    server_.SetBackup(std::move(chunks));
  }

  static void MakeRun(const std::string& directory) {
    auto store = RunStore::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    RunRecord run;
    run.name = "kept";
    run.lineage = Id128{1, 2};
    run.parameters = 2;
    ASSERT_TRUE((*store)->CreateRun(run, {0.5f, 1.0f}).ok());
  }

  CtlOutcome BackUp() { return Invoke({"backup", "--out", kAddress, "--admin", server_.address()}); }
  CtlOutcome Restore() { return Invoke({"restore", kAddress, "--state", state_}); }

  const TempDirectory directory_;
  const std::string state_ = directory_.path() + "/state";
  FakeAdminServer server_;
  FakeBucket bucket_;
};

TEST_F(BucketBackupTest, ComesBackFromTheBucket) {
  const CtlOutcome saved = BackUp();
  ASSERT_EQ(saved.code, kExitOk) << saved.err;
  EXPECT_THAT(saved.out, HasSubstr(std::string(kAddress) + ": 2 files"));
  EXPECT_EQ(bucket_.objects().size(), 3);
  const CtlOutcome restored = Restore();
  ASSERT_EQ(restored.code, kExitOk) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("run kept is in " + state_ + "/runs/kept, at version 0"));
  const auto store = RunStore::Open(state_ + "/runs/kept");
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->ReadNewestCheckpoint()->weights, (std::vector<float>{0.5f, 1.0f}));
}

TEST_F(BucketBackupTest, ReplacesNoBackupThatIsThere) {
  ASSERT_EQ(BackUp().code, kExitOk);
  const auto before = bucket_.objects();
  const CtlOutcome refused = BackUp();
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("exists; name a new backup"));
  EXPECT_EQ(bucket_.objects(), before);
}

// Files without their list, as a killed upload leaves them, are no backup; the next upload completes them.
TEST_F(BucketBackupTest, AnUploadThatWasCutOffIsNoBackup) {
  bucket_.Set("backups/monday/run.sqlite", "half of it");
  const CtlOutcome refused = Restore();
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("holds no whole backup"));
  EXPECT_EQ(BackUp().code, kExitOk);
  EXPECT_EQ(Restore().code, kExitOk);
}

TEST_F(BucketBackupTest, WhatWasChangedIsNotRestored) {
  ASSERT_EQ(BackUp().code, kExitOk);
  const std::string checkpoint = "backups/monday/checkpoints/0000000000.ckpt";
  std::string bytes = bucket_.objects().at(checkpoint);
  bytes.back() ^= 1;
  bucket_.Set(checkpoint, bytes);
  const CtlOutcome refused = Restore();
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("0000000000.ckpt of s3://models/backups/monday is not what was backed up"));
  EXPECT_FALSE(std::filesystem::exists(state_ + "/runs/kept"));
}

TEST_F(BucketBackupTest, AListThatLeadsElsewhereIsRefused) {
  for (const char* list : {"no json", "{}", "{\"format\": 2, \"files\": []}",
                           "{\"format\": 1, \"files\": [{\"name\": \"../../x\", \"bytes\": 1, \"sha256\": \"\"}]}",
                           "{\"format\": 1, \"files\": [{\"name\": \"run.sqlite\"}]}"}) {
    bucket_.Set("backups/monday/backup.json", list);
    const CtlOutcome refused = Restore();
    EXPECT_EQ(refused.code, kExitFailed) << list;
    EXPECT_THAT(refused.err, HasSubstr("backup.json")) << list;
  }
}

TEST_F(BucketBackupTest, ABackupNeedsAName) {
  for (const char* address : {"s3://models", "s3://models/", "s3:///monday"}) {
    EXPECT_NE(Invoke({"backup", "--out", address, "--admin", server_.address()}).code, kExitOk) << address;
  }
}

}  // namespace
}  // namespace terse
