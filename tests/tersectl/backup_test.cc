// tersectl backup and restore: what arrives, what is refused, and what is there afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/file_system.h"
#include "proto/backup_hash.h"
#include "storage/module_file.h"
#include "storage/run_store.h"
#include "storage/state_directory.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/fake_admin_server.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::BackupChunk FileChunk(const std::string& name, uint64_t size, const std::string& data) {
  v1::BackupChunk chunk;
  chunk.set_name(name);
  chunk.set_size(size);
  chunk.set_data(data);
  return chunk;
}

class BackupTest : public ::testing::Test {
 protected:
  // Runs `tersectl backup` against a coordinator that sends the chunks and then their hash.
  CtlOutcome BackUp(std::vector<v1::BackupChunk> chunks) {
    BackupHash hash;
    for (const v1::BackupChunk& chunk : chunks) hash.Add(chunk);
    chunks.emplace_back().set_hash(hash.ToBytes());
    server_.SetBackup(std::move(chunks));
    return Fetch();
  }
  CtlOutcome Fetch() { return Invoke({"backup", "--out", out_, "--admin", server_.address()}); }
  bool NothingIsLeft() const { return std::filesystem::is_empty(directory_.path()); }

  FakeAdminServer server_;
  const TempDirectory directory_;
  const std::string out_ = directory_.path() + "/copy";
};

TEST_F(BackupTest, ArrivesWholeOrNotAtAll) {
  const std::vector<v1::BackupChunk> chunks = {FileChunk("checkpoints/0000000007.ckpt", 3, "abc"),
                                               FileChunk("run.sqlite", 5, "de"), FileChunk("", 0, "fgh")};
  const CtlOutcome saved = BackUp(chunks);
  EXPECT_EQ(saved.code, kExitOk) << saved.err;
  EXPECT_EQ(saved.out, out_ + ": 2 files, 8 B\n");
  EXPECT_EQ(Slurp(out_ + "/run.sqlite"), "defgh");
  EXPECT_EQ(Slurp(out_ + "/checkpoints/0000000007.ckpt"), "abc");
  EXPECT_FALSE(std::filesystem::exists(out_ + ".partial"));
  EXPECT_THAT(BackUp(chunks).err, HasSubstr("exists; name a new directory with --out"));
  std::filesystem::remove_all(out_);
  server_.SetBackup(chunks);  // without the hash
  EXPECT_THAT(Fetch().err, HasSubstr("did not arrive whole; back up again"));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(BackupTest, HasAllThatARunMayHave) {
  ASSERT_EQ(BackUp({FileChunk("checkpoints/0000000007.state", 2, "st"), FileChunk("module.pt", 3, "abc"),
                    FileChunk("run.sqlite", 1, "d"), FileChunk("segments/0000000001.seg", 2, "ef")})
                .code,
            kExitOk);
  EXPECT_EQ(Slurp(out_ + "/checkpoints/0000000007.state"), "st");
  EXPECT_EQ(Slurp(out_ + "/module.pt"), "abc");
  EXPECT_EQ(Slurp(out_ + "/segments/0000000001.seg"), "ef");
}

TEST_F(BackupTest, RejectsWhatNoRunHas) {
  for (const char* name : {"../run.sqlite", "checkpoints/../x.ckpt", "/etc/passwd", "checkpoints/.ckpt", "lock",
                           "checkpoints/module.pt", "segments/1.ckpt", "checkpoints/1.seg", "segments/../1.seg"}) {
    EXPECT_THAT(BackUp({FileChunk(name, 1, "x")}).err, HasSubstr("a file that no run has")) << name;
  }
  EXPECT_THAT(BackUp({FileChunk("run.sqlite", 2, "xyz")}).err, HasSubstr("more of a file than it announced"));
  EXPECT_THAT(BackUp({FileChunk("run.sqlite", 4, "xyz")}).err, HasSubstr("less of a file than it announced"));
  EXPECT_THAT(BackUp({FileChunk("", 0, "xyz")}).err, HasSubstr("more of a file than it announced"));
  EXPECT_THAT(BackUp({FileChunk("checkpoints/1.ckpt", 1, "x")}).err, HasSubstr("sent no database"));
  EXPECT_TRUE(NothingIsLeft());
}

// A stopped coordinator's run with one committed version and a client, as a backup has it.
class RestoreTest : public ::testing::Test {
 protected:
  RestoreTest() { MakeRun(backup_); }

  static void MakeRun(const std::string& directory, const v1::RunConfig& config = v1::RunConfig()) {
    auto store = RunStore::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    RunRecord run;
    run.name = "kept";
    run.config = config.SerializeAsString();
    run.lineage = Id128{1, 2};
    run.parameters = 2;
    ASSERT_TRUE((*store)->CreateRun(run, {0.5f, 1.0f}).ok());
  }
  static Id128 LineageOf(const std::string& directory) {
    auto store = RunStore::Open(directory);
    EXPECT_TRUE(store.ok()) << store.status();
    return (*(*store)->Run())->lineage;
  }
  CtlOutcome Restore(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"restore", backup_, "--state", state_});
    return Invoke(arguments);
  }

  const TempDirectory directory_;
  const std::string backup_ = directory_.path() + "/backup";
  const std::string state_ = directory_.path() + "/state";
};

TEST_F(RestoreTest, MakesARunOfItsOwn) {
  const CtlOutcome restored = Restore();
  EXPECT_EQ(restored.code, kExitOk) << restored.err;
  EXPECT_THAT(restored.out, StartsWith("run kept is in " + state_ + "/runs/kept, at version 0\n"));
  EXPECT_THAT(restored.out, HasSubstr("terse-coordinator --state " + state_));
  EXPECT_NE(LineageOf(state_ + "/runs/kept"), (Id128{1, 2}));
  EXPECT_EQ(LineageOf(backup_), (Id128{1, 2})) << "the backup stays as it is";
  const json other = json::parse(Restore({"--run", "other", "--json"}).out);
  EXPECT_EQ(other["directory"], state_ + "/runs/other");
  EXPECT_NE(LineageOf(state_ + "/runs/other"), LineageOf(state_ + "/runs/kept"));
}

TEST_F(RestoreTest, BringsLargeMessagesAndRefusesDamagedOnes) {
  {
    const auto store = RunStore::Open(backup_);
    ASSERT_TRUE(store.ok()) << store.status();
    Commit commit;
    commit.round = 1;
    commit.model_hash = Id128{3, 3};
    commit.downstream.assign(100'000, 'x');
    ASSERT_TRUE((*store)->OpenRound(1, 0, 1).ok());
    ASSERT_TRUE((*store)->CloseRound(1, {}, 2).ok());
    ASSERT_TRUE((*store)->CommitRound(commit, false).ok());
  }
  ASSERT_EQ(Restore().code, kExitOk);
  const std::string segment = "/segments/0000000001.seg";
  {
    const auto store = RunStore::Open(state_ + "/runs/kept");
    ASSERT_TRUE(store.ok()) << store.status();
    const auto log = (*store)->ReadLog(0, 1);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(log->front().downstream, std::string(100'000, 'x'));
  }
  std::string bytes = Slurp(backup_ + segment);
  bytes[70'000] = 'y';
  ASSERT_TRUE(WriteFileSynced(PosixFiles(), backup_ + segment, {bytes}).ok());
  const CtlOutcome damaged = Restore({"--run", "other"});
  EXPECT_EQ(damaged.code, kExitFailed);
  EXPECT_THAT(damaged.err, HasSubstr("is damaged: the 100000 bytes at 0"));
  EXPECT_FALSE(std::filesystem::exists(state_ + "/runs/other"));
  std::filesystem::remove(backup_ + segment);
  EXPECT_THAT(Restore({"--run", "other"}).err, HasSubstr("0000000001.seg is missing"));
}

TEST_F(RestoreTest, NeedsTheTorchScriptFileOfTheRun) {
  v1::RunConfig config;
  config.mutable_model()->set_name("torchscript");
  config.mutable_model()->set_hash(ModuleHash("module"));
  std::filesystem::remove_all(backup_);
  MakeRun(backup_, config);
  EXPECT_THAT(Restore().err, HasSubstr("there is no " + backup_ + "/module.pt"));
  ASSERT_TRUE(WriteModule(PosixFiles(), backup_, kTorchScriptModel, "damaged").ok());
  EXPECT_THAT(Restore().err, HasSubstr(backup_ + "/module.pt has the SHA-256"));
  EXPECT_THAT(*ListRunNames(PosixFiles(), state_), ElementsAre());
  ASSERT_TRUE(WriteModule(PosixFiles(), backup_, kTorchScriptModel, "module").ok());
  EXPECT_EQ(Restore().code, kExitOk);
  EXPECT_EQ(Slurp(state_ + "/runs/kept/module.pt"), "module");
}

TEST_F(RestoreTest, KeepsTheRunThatWasThere) {
  ASSERT_EQ(Restore().code, kExitOk);
  const Id128 first = LineageOf(state_ + "/runs/kept");
  const CtlOutcome refused = Restore();
  EXPECT_EQ(refused.code, kExitFailed);
  EXPECT_THAT(refused.err, HasSubstr("replace it with --force"));
  EXPECT_EQ(LineageOf(state_ + "/runs/kept"), first);
  const json forced = json::parse(Restore({"--force", "--json"}).out);
  EXPECT_EQ(forced["replaced"], state_ + "/runs/kept.before-restore");
  EXPECT_EQ(LineageOf(state_ + "/runs/kept.before-restore"), first);
  EXPECT_NE(LineageOf(state_ + "/runs/kept"), first);
  EXPECT_THAT(Restore({"--force"}).err, HasSubstr("from an earlier restore; remove it first"));
  EXPECT_THAT(*ListRunNames(PosixFiles(), state_), ElementsAre("kept"));
}

TEST_F(RestoreTest, NeedsABackupAndNoCoordinator) {
  EXPECT_THAT(Invoke({"restore", directory_.path(), "--state", state_}).err, HasSubstr("holds no backup of a run"));
  EXPECT_THAT(Restore({"--run", "../x"}).err, HasSubstr("cannot name a run"));
  ASSERT_TRUE(PosixFiles().MakeDirectory(state_).ok());
  const auto lock = PosixFiles().Lock(state_);
  ASSERT_TRUE(lock.ok());
  const CtlOutcome busy = Restore();
  EXPECT_EQ(busy.code, kExitFailed);
  EXPECT_THAT(busy.err, HasSubstr("stop the coordinator first"));
  EXPECT_FALSE(std::filesystem::exists(state_ + "/runs/kept"));
}

TEST_F(RestoreTest, LeavesARunThatLivesInTheStateDirectoryItselfAlone) {
  MakeRun(state_);
  EXPECT_THAT(Restore({"--force"}).err, HasSubstr("itself holds run 'kept'"));
  EXPECT_EQ(LineageOf(state_), (Id128{1, 2}));
  EXPECT_EQ(Restore({"--run", "beside"}).code, kExitOk);
}

}  // namespace
}  // namespace terse
