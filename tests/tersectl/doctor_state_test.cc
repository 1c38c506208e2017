// `tersectl doctor --state` on directories that the real stores made, whole and broken on purpose: what it finds, its
// exit code, and that it changes nothing.
#include "tersectl/doctor_state.h"

#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "storage/audit_log.h"
#include "storage/module_file.h"
#include "storage/schema.h"
#include "storage/sqlite_db.h"
#include "storage/state_directory.h"
#include "terse/v1/run_config.pb.h"
#include "tests/storage/client_state_testing.h"
#include "tests/storage/storage_testing.h"
#include "tests/tersectl/run_tersectl.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kRestore[] = "restore a backup with `tersectl restore BACKUP --state DIR`";
constexpr char kReset[] = "start over with `terse-client --state DIR --reset-state`";

// Everything that one can see of a directory's files: kind, mode, time of the last change, contents.
std::map<std::string, std::string> Tree(const std::string& directory) {
  std::map<std::string, std::string> tree;
  const auto add = [&](const std::string& path) {
    struct stat info = {};
    ASSERT_EQ(lstat(path.c_str(), &info), 0) << path;
    tree[path] = absl::StrCat(info.st_mode, " ", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, " ",
                              S_ISREG(info.st_mode) ? HashBytes(Slurp(path)).ToHex() : "");
  };
  add(directory);
  if (!std::filesystem::is_directory(directory)) return tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) add(entry.path().string());
  return tree;
}

void Flip(const std::string& path, size_t at) {
  std::string bytes = Slurp(path);
  ASSERT_LT(at, bytes.size());
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void Execute(const std::string& database, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(database.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

using Findings = std::map<std::string, Finding>;

Findings ByCheck(const std::string& output) {
  static const std::map<std::string, Health> kHealths = {
      {"ok", Health::kOk}, {"warning", Health::kWarning}, {"failure", Health::kFailure}};
  Findings findings;
  for (const json& finding : json::parse(output)) {
    const std::string check = finding["check"];
    // A failure of several of one name is the one to look at.
    if (findings.count(check) > 0 && findings[check].health != Health::kOk) continue;
    findings[check] = {check, kHealths.at(finding["result"]), finding["detail"], finding["remedy"]};
  }
  return findings;
}

class StateDoctor : public ::testing::Test {
 protected:
  // A doctor's findings, which must leave DIR as it was.
  Findings Examine(const std::string& directory, int code) {
    const auto before = Tree(directory);
    const CtlOutcome outcome = Invoke({"doctor", "--json", "--state", directory});
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    EXPECT_EQ(Tree(directory), before);
    return ByCheck(outcome.out);
  }
  // Examines in a process of its own: SQLite's locks do not keep a process from itself.
  Findings ExamineFromOutside(const std::string& directory, int code) {
    const auto before = Tree(directory);
    FILE* pipe =
        popen(absl::StrCat(Program("tersectl"), " doctor --json --state ", directory, " 2>/dev/null").c_str(), "r");
    std::string out;
    for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) out.push_back(static_cast<char>(c));
    EXPECT_EQ(WEXITSTATUS(pclose(pipe)), code) << out;
    EXPECT_EQ(Tree(directory), before);
    return ByCheck(out);
  }
  static void ExpectFailure(const Findings& findings, const std::string& check, const std::string& detail,
                            const std::string& remedy) {
    ASSERT_EQ(findings.count(check), 1u) << check;
    const Finding& finding = findings.at(check);
    EXPECT_EQ(finding.health, Health::kFailure) << check << ": " << finding.detail;
    EXPECT_THAT(finding.detail, HasSubstr(detail));
    EXPECT_THAT(finding.remedy, HasSubstr(remedy));
  }
  static void ExpectAllOk(const Findings& findings) {
    for (const auto& [check, finding] : findings) EXPECT_EQ(finding.health, Health::kOk) << check << finding.detail;
  }

  TempDirectory directory_;
};

// A coordinator with one run that has rounds, two checkpoints and an audit log.
class CoordinatorDoctor : public StateDoctor {
 protected:
  void SetUp() override {
    ASSERT_OK(PosixFiles().MakeDirectory(state_));
    lock_ = *PosixFiles().Lock(state_);
    ASSERT_OK((*AuditLog::Open(state_))->Add({}).status());
    store_ = *RunStore::Open(run_);
    RunRecord run = TestRun(4);
    v1::RunConfig config;
    config.set_name("mnist");
    run.config = config.SerializeAsString();
    ASSERT_OK(store_->CreateRun(run, TestWeights(0)));
    for (int64_t round = 1; round <= 6; ++round) ASSERT_OK(RunRound(*store_, round));
    ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(3), 2));
    ASSERT_OK(store_->WriteCheckpoint(TestCheckpoint(6), 2));
    ASSERT_OK(store_->OpenRound(7, 6, 7000));
  }
  void Stop() {
    store_.reset();
    lock_.reset();
  }

  const std::string state_ = directory_.Path("state");
  const std::string run_ = state_ + "/runs/mnist", database_ = run_ + "/run.sqlite";
  std::unique_ptr<DirectoryLock> lock_;
  std::unique_ptr<RunStore> store_;
};

TEST_F(CoordinatorDoctor, AllIsWell) {
  Stop();
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_THAT(findings["state"].detail, HasSubstr(state_ + ": a coordinator's"));
  EXPECT_EQ(findings["in use"].detail, "no");
  EXPECT_EQ(findings["audit log"].detail, "whole");
  EXPECT_EQ(findings["run mnist"].detail,
            absl::StrCat("active, version 6, round 7 open, 1 clients, lineage ", Id128{7, 7}.ToHex()));
  EXPECT_THAT(findings["run mnist: database"].detail,
              HasSubstr(absl::StrCat("whole, schema version ", kSchemaVersion)));
  EXPECT_EQ(findings["run mnist: checkpoints"].detail, "2 whole, the newest 0000000006.ckpt with 72 B");
  EXPECT_THAT(findings["disk"].detail, HasSubstr("the next checkpoint of all runs takes 72 B"));
  const CtlOutcome table = Invoke({"doctor", "--state", state_});
  EXPECT_THAT(table.out, Not(HasSubstr("->")));
  EXPECT_THAT(table.err, IsEmpty());
  // Nobody serves a directory that a restore replaced, whatever is in it.
  ASSERT_OK(PosixFiles().MakeDirectory(run_ + kReplacedSuffix));
  ExpectAllOk(Examine(state_, kExitOk));
  // A run's own directory, as a backup is, is a state directory too.
  EXPECT_EQ(Examine(run_, kExitOk).count("run mnist: database"), 1u);
}

TEST_F(CoordinatorDoctor, LooksAtARunThatIsWritten) {
  for (int i = 0; i < 3; ++i) {
    Findings findings = ExamineFromOutside(state_, kExitOk);
    ExpectAllOk(findings);
    EXPECT_EQ(findings["in use"].detail, "yes, by a process that runs");
    EXPECT_THAT(findings["run mnist"].detail, HasSubstr(absl::StrCat("version 6, round ", 7 + i, " open")));
    ASSERT_OK(store_->AbortRound(7 + i, "next", 1)) << "the run goes on as before";
    ASSERT_OK(store_->OpenRound(8 + i, 6, 1));
  }
}

TEST_F(CoordinatorDoctor, ACrashBetweenClosingAndCommitting) {
  ASSERT_OK(store_->CloseRound(7, {}, 7001));
  // The copy is as a killed process leaves it: the log is not in the database yet.
  const std::string crashed = directory_.Path("crashed");
  CopyDirectory(state_, crashed);
  Findings findings = Examine(crashed, kExitOk);
  ExpectAllOk(findings);
  EXPECT_EQ(findings["in use"].detail, "no");
  EXPECT_THAT(findings["run mnist"].detail,
              HasSubstr("round 7 closed and not committed: unless the coordinator runs, its next start aborts it"));
  // A relay looks first whether the round is in its own update.
  ASSERT_OK(SqliteDb::Open(crashed + "/runs/mnist/run.sqlite", SqliteDb::Mode::kWriter)
                .value()
                ->Script("INSERT INTO relay (id, facts) VALUES (1, x'01')"));
  EXPECT_THAT(Examine(crashed, kExitOk)["run mnist"].detail,
              HasSubstr("round 7 closed and not committed: unless the relay runs, its next start settles it"));
}

TEST_F(CoordinatorDoctor, ADamagedSegment) {
  ASSERT_OK(store_->CloseRound(7, {}, 7001));
  Commit commit = TestCommit(7);
  commit.downstream.assign(100'000, 'x');
  ASSERT_OK(store_->CommitRound(commit, false));
  ExpectAllOk(ExamineFromOutside(state_, kExitOk));
  Stop();
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_THAT(findings["run mnist: segments"].detail, HasSubstr("1 whole, with"));
  const std::string segment = run_ + "/segments/0000000001.seg";
  Flip(segment, 70'000);
  findings = Examine(state_, kExitFailed);
  ExpectFailure(findings, "run mnist: segments", segment + " is damaged: the 100000 bytes at 0", kRestore);
  EXPECT_EQ(findings["run mnist: database"].health, Health::kOk);
  std::filesystem::remove(segment);
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: segments", segment + " is missing", kRestore);
}

TEST_F(CoordinatorDoctor, AFlippedByteOfTheDatabase) {
  Stop();
  const std::string bytes = Slurp(database_);
  const size_t at = bytes.find("message 5");
  ASSERT_NE(at, std::string::npos);
  Flip(database_, at);
  const Findings findings = Examine(state_, kExitFailed);
  ExpectFailure(findings, "run mnist: database", absl::StrCat(database_, " is damaged: a row of its table"), kRestore);
  EXPECT_EQ(findings.count("run mnist"), 0u) << "nothing is known of it";
  // The words of the store itself.
  const std::string message(RunStore::Open(run_, PosixFiles(), RunStore::Depth::kEverything).status().message());
  const Finding& finding = findings.at("run mnist: database");
  EXPECT_EQ(absl::StrCat(finding.detail, "; ", finding.remedy), message);
}

TEST_F(CoordinatorDoctor, NoDatabaseAtAll) {
  Stop();
  std::filesystem::resize_file(database_, 0);
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: database", "is missing or empty", kRestore);
  std::filesystem::remove(database_);
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: database", database_ + " is missing", kRestore);
  ExpectFailure(Examine(run_, kExitFailed), "run: database", database_ + " is missing", kRestore);
  std::ofstream(database_) << std::string(5000, 'x');
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: database", "file is not a database", kRestore);
}

TEST_F(CoordinatorDoctor, ANewerSchema) {
  Stop();
  Execute(database_, "PRAGMA user_version=99");
  ExpectFailure(
      Examine(state_, kExitFailed), "run mnist: database",
      absl::StrCat(database_, " has schema version 99 and this program knows versions up to ", kSchemaVersion),
      "use the program that wrote it, or a newer one");
}

TEST_F(CoordinatorDoctor, AnOlderSchemaIsNotMigratedHere) {
  Stop();
  std::filesystem::copy_file(InSource("tests/golden/run_version_1.sqlite"), database_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Examine(state_, kExitFailed)["run mnist: database"].detail, HasSubstr("checkpoint"));
  std::filesystem::remove_all(run_ + "/checkpoints");
  Execute(database_, "DELETE FROM runs; DELETE FROM checkpoints");
  const Findings findings = Examine(state_, kExitOk);
  EXPECT_THAT(findings.at("run mnist: database").detail,
              HasSubstr(absl::StrCat("schema version 1, which its next start brings to ", kSchemaVersion)));
  EXPECT_EQ(findings.at("run mnist").health, Health::kWarning) << "no run";
}

TEST_F(CoordinatorDoctor, ARowThatRefersToNothing) {
  Stop();
  Execute(database_, "PRAGMA foreign_keys=OFF; DELETE FROM clients");
  ASSERT_OK(RunStore::Open(run_).status()) << "which opening does not see";
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: database", "refers to one of clients that is not there",
                kRestore);
}

TEST_F(CoordinatorDoctor, ALogThatDoesNotReachTheHead) {
  Stop();
  Execute(database_, "DELETE FROM downstream_log WHERE version = 5");
  EXPECT_OK(RunStore::Open(run_).status());
  ExpectAllOk(Examine(state_, kExitOk));  // the newest checkpoint is the head
  Flip(run_ + "/checkpoints/0000000006.ckpt", 45);
  ExpectFailure(Examine(state_, kExitFailed), "run mnist: database", "lacks a log message between versions 3 and 6",
                kRestore);
}

TEST_F(CoordinatorDoctor, DamagedCheckpoints) {
  Stop();
  const std::string newest = run_ + "/checkpoints/0000000006.ckpt", oldest = run_ + "/checkpoints/0000000003.ckpt";
  std::filesystem::resize_file(newest, 50);
  Findings findings = Examine(state_, kExitOk);
  EXPECT_EQ(findings["run mnist: checkpoints"].health, Health::kWarning);
  EXPECT_THAT(findings["run mnist: checkpoints"].detail, HasSubstr(newest));
  EXPECT_THAT(findings["run mnist: checkpoints"].remedy, HasSubstr("a whole one takes its place"));
  std::filesystem::remove(newest);
  EXPECT_EQ(Examine(state_, kExitOk)["run mnist: checkpoints"].health, Health::kWarning);
  Flip(oldest, 45);
  findings = Examine(state_, kExitFailed);
  EXPECT_EQ(findings["run mnist: checkpoints"].health, Health::kFailure);
  ExpectFailure(findings, "run mnist: database", "holds no whole checkpoint", kRestore);
}

TEST_F(CoordinatorDoctor, ADamagedAuditLog) {
  Stop();
  const std::string audit = state_ + "/audit.sqlite";
  Execute(audit, "PRAGMA user_version=99");
  ExpectFailure(Examine(state_, kExitFailed), "audit log", "has schema version 99", "use the program that wrote it");
  Execute(audit, "PRAGMA user_version=1");
  ExpectAllOk(Examine(state_, kExitOk));
  std::filesystem::resize_file(audit, 4096);
  const Findings findings = Examine(state_, kExitFailed);
  ExpectFailure(findings, "audit log", absl::StrCat("the audit log ", audit, " is damaged"), "a new one is made");
  EXPECT_EQ(findings.at("run mnist: database").health, Health::kOk);
}

TEST_F(CoordinatorDoctor, AModuleThatIsNotTheRuns) {
  Stop();
  const std::string twin = directory_.Path("twin");
  {
    const auto store = *RunStore::Open(twin);
    RunRecord run = TestRun(4);
    v1::RunConfig config;
    config.mutable_model()->set_name("torchscript");
    config.mutable_model()->set_hash(ModuleHash("model"));
    run.config = config.SerializeAsString();
    ASSERT_OK(store->CreateRun(run, TestWeights(0)));
  }
  ExpectFailure(Examine(twin, kExitFailed), "run mnist: module", "module.pt", "");
  std::ofstream(twin + "/module.pt") << "model";
  EXPECT_EQ(Examine(twin, kExitOk)["run mnist: module"].health, Health::kOk);
  Flip(twin + "/module.pt", 0);
  ExpectFailure(Examine(twin, kExitFailed), "run mnist: module", "module.pt", "");
}

TEST_F(CoordinatorDoctor, WithoutRoomForCopiesItSaysSo) {
  Stop();
  setenv("TMPDIR", "/nowhere", 1);
  const Findings findings = Examine(state_, kExitOk);
  unsetenv("TMPDIR");
  EXPECT_EQ(findings.at("databases").health, Health::kWarning);
  EXPECT_THAT(findings.at("databases").remedy, HasSubstr("TMPDIR"));
}

TEST_F(CoordinatorDoctor, FilesThatOthersMayReadOrOwn) {
  Stop();
  const std::string pki = directory_.Path("pki"), tls = state_ + "/tls";
  ASSERT_EQ(Invoke({"pki", "--pki", pki, "init"}).code, kExitOk);
  ASSERT_EQ(Invoke({"pki", "--pki", pki, "issue", "client", "ada", "--out", tls}).code, kExitOk);
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_THAT(findings["TLS folder"].detail, HasSubstr("client ada"));
  ASSERT_EQ(chmod((tls + "/node.key").c_str(), 0644), 0);
  ExpectFailure(Examine(state_, kExitFailed), "key", "has mode 0644", "chmod 600");
  ASSERT_EQ(chmod((tls + "/node.key").c_str(), 0600), 0);
  ASSERT_EQ(chmod(state_.c_str(), 0755), 0);
  EXPECT_EQ(Examine(state_, kExitOk)["mode"].health, Health::kWarning);
  ASSERT_EQ(chmod(state_.c_str(), 0700), 0);
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(database_.c_str(), 12345, 12345), 0);
  findings = Examine(state_, kExitOk);
  EXPECT_EQ(findings["owner"].health, Health::kWarning);
  EXPECT_THAT(findings["owner"].detail, AllOf(HasSubstr(database_), HasSubstr("12345")));
}

// A client with a sealed update of round 3.
class ClientDoctor : public StateDoctor {
 protected:
  void SetUp() override {
    client_ = OpenState(state_);
    ASSERT_OK(client_->Begin(kLineage, kLineage, Durability::kStrict));
    for (uint64_t n = 1; n <= 3; ++n) {
      ASSERT_OK(SealNumber(*client_, n));
      if (n == 3) break;
      ASSERT_OK(client_->Settle(true));
    }
    ASSERT_OK(client_->SaveModel({kLineage, 2, TestWeights(2)}));
  }

  const std::string state_ = directory_.Path("client");
  std::unique_ptr<ClientState> client_;
};

TEST_F(ClientDoctor, SaysWhatIsPending) {
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_EQ(findings["in use"].detail, "yes, by a process that runs");
  EXPECT_EQ(findings["manifest"].detail, absl::StrCat("generation 3, lineage ", kLineage.ToHex()));
  EXPECT_THAT(findings["update"].detail, HasSubstr("sealed for round 3 on version 2: it waits for its verdict"));
  EXPECT_THAT(findings["files"].detail, MatchesRegex("4 with [0-9]+ B, all whole"));
  EXPECT_EQ(findings["cached model"].detail, "72 B");
  EXPECT_THAT(findings["disk"].detail, HasSubstr("the next seal takes 72 B"));
  ASSERT_OK(client_->Settle(true));
  client_.reset();
  findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_EQ(findings["in use"].detail, "no");
  EXPECT_EQ(findings["update"].detail, "none waits for its verdict");
}

TEST_F(ClientDoctor, SaysWhatIsLeftBehind) {
  ASSERT_OK(client_->Move(Id128{4, 4}, {}).status());
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_EQ(findings["manifest"].detail,
            absl::StrCat("generation 3, lineage ", Id128{4, 4}.ToHex(), " of the run ", kLineage.ToHex()));
  EXPECT_EQ(findings["left behind"].detail,
            "the client has left 1 lineage of its run, and keeps 1 update until it hears the verdict there");
  EXPECT_EQ(findings["update"].detail, "none waits for its verdict");
  EXPECT_THAT(findings["files"].detail, MatchesRegex("2 with [0-9]+ B, all whole"));
  client_.reset();
  const std::string path = state_ + "/parted.4";
  Flip(path, 2);
  findings = Examine(state_, kExitFailed);
  ExpectFailure(findings, "parted.4", absl::StrCat(path, " is damaged: "), kReset);
  EXPECT_EQ(findings.count("left behind"), 0u);
}

TEST_F(ClientDoctor, DamagedFiles) {
  client_.reset();
  const std::string whole = directory_.Path("whole");
  CopyDirectory(state_, whole);
  for (const char* name : {"dense.3", "outbox.3", "trainer.3", "history.3"}) {
    for (const bool flips : {true, false}) {
      CopyDirectory(whole, state_);
      const std::string path = state_ + "/" + name;
      if (flips) Flip(path, 2);
      if (!flips) std::filesystem::remove(path);
      const Findings findings = Examine(state_, kExitFailed);
      ExpectFailure(findings, name, absl::StrCat(path, " is damaged: "), kReset);
      EXPECT_EQ(findings.count("files"), 0u);
      // The words of the client itself.
      EXPECT_EQ(absl::StrCat(findings.at(name).detail, "; ", findings.at(name).remedy),
                ClientState::Open(state_).status().message());
    }
  }
}

TEST_F(ClientDoctor, ADamagedManifest) {
  client_.reset();
  const std::string path = state_ + "/MANIFEST";
  const std::string bytes = Slurp(path);
  std::filesystem::resize_file(path, 100);
  ExpectFailure(Examine(state_, kExitFailed), "manifest", path + " is damaged: it has 100 bytes", kReset);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  Flip(path, 60);
  ExpectFailure(Examine(state_, kExitFailed), "manifest", "it does not match its checksum", kReset);
  std::filesystem::remove(path);
  ExpectFailure(Examine(state_, kExitFailed), "manifest", "it is missing, though there is a dense.2", kReset);
}

TEST_F(ClientDoctor, ACachedModelIsNoLoss) {
  client_.reset();
  const std::string model = state_ + "/model";
  Flip(model, 50);
  Findings findings = Examine(state_, kExitOk);
  EXPECT_EQ(findings["cached model"].health, Health::kWarning);
  EXPECT_EQ(findings["cached model"].detail, "it does not match its checksum");
  // A terabyte that is not there: were it read, the memory would not suffice.
  std::filesystem::resize_file(model, uint64_t{1} << 40);
  struct stat info = {};
  ASSERT_EQ(stat(model.c_str(), &info), 0);
  const CtlOutcome outcome = Invoke({"doctor", "--json", "--state", state_});
  EXPECT_THAT(ByCheck(outcome.out)["cached model"].detail, HasSubstr("it announces 4 weights"));
}

TEST_F(ClientDoctor, AResidualInMemory) {
  client_.reset();
  std::filesystem::remove_all(state_);
  client_ = OpenState(state_);
  ASSERT_OK(client_->Begin(kLineage, kLineage, Durability::kRelaxed));
  ASSERT_OK(SealNumber(*client_, 1));
  Findings findings = Examine(state_, kExitOk);
  ExpectAllOk(findings);
  EXPECT_THAT(findings["residual"].detail, HasSubstr("in the memory of the process that runs"));
  client_.reset();
  findings = Examine(state_, kExitOk);
  EXPECT_EQ(findings["residual"].health, Health::kWarning);
  EXPECT_THAT(findings["residual"].remedy, HasSubstr("zero one, which is counted"));
}

TEST_F(StateDoctor, WhatIsNoStateDirectory) {
  const std::string missing = directory_.Path("missing"), file = directory_.Path("file"), empty = directory_.Path("e");
  std::ofstream(file) << "text";
  std::filesystem::create_directory(empty);
  const auto expect = [&](const std::string& directory, const std::string& detail) {
    const CtlOutcome outcome = Invoke({"doctor", "--json", "--state", directory});
    EXPECT_EQ(outcome.code, kExitFailed);
    EXPECT_THAT(outcome.err, HasSubstr("1 of 1 checks failed"));
    ExpectFailure(ByCheck(outcome.out), "state", detail, "name the directory that the daemon has as --state");
  };
  expect(missing, missing + ": No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(missing));
  expect(file, file + ": Not a directory");
  expect(empty, empty + " holds neither a coordinator's nor a client's files");
  EXPECT_TRUE(std::filesystem::is_empty(empty));
  EXPECT_EQ(Invoke({"doctor", "--state", empty, "--pki", empty}).code, kExitUsage);
}

TEST(StateChecks, RoomForTwo) {
  const auto with = [](uint64_t free) { return CheckRoom(free, 1000, 100, "seal", "/state"); };
  EXPECT_EQ(with(200).health, Health::kOk);
  EXPECT_EQ(with(199).health, Health::kWarning);
  EXPECT_EQ(with(100).health, Health::kWarning);
  EXPECT_EQ(with(99).health, Health::kFailure);
  EXPECT_EQ(with(99).detail, "99 B of 1.00 kB free for /state; the next seal takes 100 B");
}

}  // namespace
}  // namespace terse
