// A disk that is full or fails, at every write and every sync of every call that changes the store.
#include <errno.h>

#include <functional>

#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

// Fails one call on demand. Syncs that succeed do nothing: nothing here looks at a disk after a power cut.
class FaultyDisk {
 public:
  // The n-th "write" (or truncation) or "sync" from now on, on paths that end so, fails with this errno.
  void Arm(absl::string_view call, int n, int error, absl::string_view end = "") {
    call_ = std::string(call);
    end_ = std::string(end);
    left_ = n;
    error_ = error;
  }
  // Disarms the fault; returns whether an operation failed.
  bool Disarm() { return std::exchange(left_, 0) <= 0; }

 private:
  int OnCall(absl::string_view call, const std::string& path) {
    const bool ours = (call == "truncate" ? "write" : call) == call_ && absl::EndsWith(path, end_);
    if (left_ > 0 && ours && --left_ == 0) return error_;
    return call == "sync" ? kSkipCall : 0;
  }

  std::string call_, end_;
  int left_ = 0;
  int error_ = 0;
  const SystemCallWatch watch_{[this](absl::string_view call, const std::string& path) { return OnCall(call, path); }};
};

std::unique_ptr<RunStore> OpenForTrial(const std::string& directory) {
  auto store = RunStore::Open(directory);
  EXPECT_OK(store.status());
  return *std::move(store);
}

struct StoreCall {
  const char* name;
  std::function<absl::Status(RunStore&)> prepare;
  std::function<absl::Status(RunStore&)> call;
};

absl::Status CloseFirst(RunStore& store) {
  if (absl::Status status = store.OpenRound(1, 0, 1); !status.ok()) return status;
  return store.CloseRound(1, {TestUpdate(0, 1, Id128())}, 2);
}

Commit CommitWithHistory() {
  Commit commit = TestCommit(1);
  commit.history = {{0, "update 1"}};
  return commit;
}

std::vector<StoreCall> StoreCalls() {
  const auto nothing = [](RunStore&) { return absl::OkStatus(); };
  const auto first_round = [](RunStore& store) { return RunRound(store, 1); };
  const auto open = [](RunStore& store) { return store.OpenRound(1, 0, 1); };
  return {
      {"RegisterClient", nothing, [](RunStore& store) { return store.RegisterClient("b", 1).status(); }},
      {"RecordReset", first_round, [](RunStore& store) { return store.RecordReset(0); }},
      {"CompactHistory", first_round, [](RunStore& store) { return store.CompactHistory(0, 1, "state"); }},
      {"ForgetHistory", first_round, [](RunStore& store) { return store.ForgetHistory(0); }},
      {"RecordFailure", nothing, [](RunStore& store) { return store.RecordFailure(0).status(); }},
      {"SetSamples", nothing, [](RunStore& store) { return store.SetSamples(0, 60000); }},
      {"SetBelow", nothing,
       [](RunStore& store) {
         return store.SetBelow({0, {1, 2, 3, 4, 5}});
       }},
      {"SetRunState", nothing, [](RunStore& store) { return store.SetRunState(RunState::kPaused, "by hand"); }},
      {"AddLedger", nothing,
       [](RunStore& store) {
         return store.AddLedger({{0, 0, Direction::kUp, 1, 2, 3}});
       }},
      {"OpenRound", nothing, open},
      {"CloseRound", open, [](RunStore& store) { return store.CloseRound(1, {TestUpdate(0, 1, Id128())}, 2); }},
      {"CommitRound", CloseFirst, [](RunStore& store) { return store.CommitRound(CommitWithHistory(), true); }},
      {"AbortRound", CloseFirst, [](RunStore& store) { return store.AbortRound(1, "deadline", 3); }},
      {"WriteCheckpoint", first_round, [](RunStore& store) { return store.WriteCheckpoint(TestCheckpoint(1), 1); }},
  };
}

// One store for each trial, prepared for the step.
class DiskTrial {
 public:
  explicit DiskTrial(const StoreCall& step) {
    store_ = OpenForTrial(Path());
    EXPECT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    EXPECT_OK(store_->RegisterClient("a", 1).status());
    EXPECT_OK(step.prepare(*store_));
  }
  RunStore& store() { return *store_; }
  std::string Path() const { return directory_.Path(); }
  // Returns the tables as the store shows them now.
  std::string Tables() const { return DumpTables(Path()); }
  // Returns the tables as a process finds them that starts after a kill.
  std::string TablesAfterKill() const {
    TempDirectory copy;
    CopyDirectory(Path(), copy.Path());
    std::filesystem::remove(copy.Path("run.sqlite-shm"));
    return DumpTables(copy.Path());
  }
  void Reopen() {
    store_.reset();
    store_ = OpenForTrial(Path());
  }

 private:
  TempDirectory directory_;
  std::unique_ptr<RunStore> store_;
};

// Runs `body` with the n-th call failing, for n = 1, 2, ... until there are fewer calls than that.
void ForEveryCall(FaultyDisk& disk, const StoreCall& step, absl::string_view call, int error,
                  const std::function<void(DiskTrial&, const absl::Status&)>& check) {
  int n = 0;
  for (bool fired = true; fired;) {
    SCOPED_TRACE(absl::StrCat(step.name, ", ", call, " number ", ++n, ", errno ", error));
    ASSERT_LT(n, 100);
    DiskTrial trial(step);
    disk.Arm(call, n, error);
    const absl::Status status = step.call(trial.store());
    fired = disk.Disarm();
    if (fired) {
      check(trial, status);
    } else {
      EXPECT_OK(status);
    }
  }
  EXPECT_GT(n, 1) << step.name << " makes no such call";
}

TEST(DiskErrors, AFailedWriteChangesNothingAndTheSameCallWorksLater) {
  FaultyDisk disk;
  for (const StoreCall& step : StoreCalls()) {
    DiskTrial reference(step);
    const std::string before = reference.Tables();
    { ASSERT_OK(step.call(reference.store())); }
    const std::string after = reference.Tables();
    for (int error : {EIO, ENOSPC}) {
      ForEveryCall(disk, step, "write", error, [&](DiskTrial& trial, const absl::Status& status) {
        EXPECT_EQ(status.code(), error == EIO ? absl::StatusCode::kUnavailable : absl::StatusCode::kResourceExhausted)
            << status;
        EXPECT_TRUE(IsDiskTrouble(status));
        const std::string now = trial.Tables();
        EXPECT_EQ(trial.TablesAfterKill(), now);
        // The checkpoint's row stands when only the pruning that follows it failed.
        const bool recorded = std::string(step.name) == "WriteCheckpoint" && now != before;
        if (recorded) {
          EXPECT_EQ(trial.store().NewestCheckpointFile()->version, 1);
        } else {
          EXPECT_EQ(now, before);
        }
        EXPECT_OK(step.call(trial.store()));
        EXPECT_EQ(trial.Tables(), after);
        EXPECT_EQ(trial.TablesAfterKill(), after);
      });
    }
  }
}

TEST(DiskErrors, AFailedSyncStopsTheStore) {
  FaultyDisk disk;
  for (const StoreCall& step : StoreCalls()) {
    DiskTrial reference(step);
    const std::string before = reference.Tables();
    { ASSERT_OK(step.call(reference.store())); }
    const std::string after = reference.Tables();
    ForEveryCall(disk, step, "sync", EIO, [&](DiskTrial& trial, const absl::Status& status) {
      EXPECT_TRUE(IsSyncFailure(status)) << status;
      const std::string shown = trial.Tables();
      EXPECT_CODE(step.call(trial.store()), kUnknown, "restart the coordinator");
      EXPECT_CODE(trial.store().RecordReset(0), kUnknown, "restart the coordinator");
      EXPECT_EQ(trial.Tables(), shown);
      EXPECT_OK(trial.store().GetHead().status());
      trial.Reopen();
      EXPECT_OK(trial.store().RecordReset(0));
    });
  }
}

// The move of the log into the database, which follows a commit when the log is long.
class LongLog : public ::testing::Test {
 protected:
  LongLog() : store_(OpenForTrial(directory_.Path())) {
    EXPECT_OK(store_->CreateRun(TestRun(4), TestWeights(0)));
    EXPECT_OK(store_->RegisterClient("a", 1).status());
    EXPECT_OK(CloseFirst(*store_));
    commit_.history = {{0, update_}};
  }

  FaultyDisk disk_;
  TempDirectory directory_;
  std::unique_ptr<RunStore> store_;
  const std::string update_ = std::string(5 << 20, 'x');  // stands in a row, however large it is
  Commit commit_ = TestCommit(1);
};

TEST_F(LongLog, AFailedSyncOfTheDatabaseStopsTheStore) {
  disk_.Arm("sync", 1, EIO, "run.sqlite");
  EXPECT_CODE(store_->CommitRound(commit_, true), kUnknown, "what is on the disk is not known");
  EXPECT_TRUE(disk_.Disarm());
  EXPECT_CODE(store_->RecordReset(0), kUnknown, "restart the coordinator");
  store_.reset();
  store_ = OpenForTrial(directory_.Path());
  EXPECT_EQ(store_->GetHead()->version, 1);
}

TEST_F(LongLog, AFailedWriteToTheDatabaseCanWait) {
  for (int error : {ENOSPC, EIO}) {
    disk_.Arm("write", 1, error, "run.sqlite");
    EXPECT_OK(error == ENOSPC ? store_->CommitRound(commit_, true) : store_->RecordReset(0));
    EXPECT_TRUE(disk_.Disarm());
  }
  EXPECT_OK(store_->RecordReset(0));
  store_.reset();
  store_ = OpenForTrial(directory_.Path());
  EXPECT_EQ(store_->GetHead()->version, 1);
}

// The log's index in shared memory grows only after the commit is in the log: the store does not show the transaction,
// and a restart does.
TEST(DiskErrors, AnIndexThatCannotGrowMakesACommitUnknown) {
  FaultyDisk disk;
  TempDirectory directory;
  auto db = SqliteDb::Open(directory.Path("run.sqlite"), SqliteDb::Mode::kWriter).value();
  ASSERT_OK(db->Script("CREATE TABLE t (b BLOB); PRAGMA cache_spill=OFF"));
  const std::string large(20 << 20, 'x');
  disk.Arm("write", 1, EIO, "-shm");
  const absl::Status status =
      db->InTransaction([&] { return db->Prepare("INSERT INTO t VALUES (?)").Blob(large).Run(); });
  EXPECT_TRUE(disk.Disarm());
  EXPECT_TRUE(IsSyncFailure(status)) << status;
  EXPECT_CODE(db->InTransaction([] { return absl::OkStatus(); }), kUnknown, "restart the coordinator");
  const auto rows = [](SqliteDb& database) {
    Statement count = database.Prepare("SELECT COUNT(*) FROM t");
    EXPECT_TRUE(count.Step().value());
    return count.GetInt(0);
  };
  EXPECT_EQ(rows(*db), 0);
  TempDirectory copy;
  CopyDirectory(directory.Path(), copy.Path());
  std::filesystem::remove(copy.Path("run.sqlite-shm"));
  EXPECT_EQ(rows(*SqliteDb::Open(copy.Path("run.sqlite"), SqliteDb::Mode::kWriter).value()), 1);
}

// Opening makes its own changes; a disk that fails at any of them refuses, and the next opening works.
TEST(DiskErrors, OpeningFailsWholeOrNotAtAll) {
  FaultyDisk disk;
  for (const auto& [call, error] : {std::pair("write", ENOSPC), std::pair("write", EIO), std::pair("sync", EIO)}) {
    for (int n = 1;; n += n < 12 ? 1 : 7) {  // most writes make the tables, one as the other
      SCOPED_TRACE(absl::StrCat(call, " number ", n, ", errno ", error));
      TempDirectory directory;
      disk.Arm(call, n, error);
      const absl::Status status = RunStore::Open(directory.Path()).status();
      if (!disk.Disarm()) {
        EXPECT_GT(n, 2);
        break;
      }
      // Emptying the log when the process ends is not needed, and nobody hears of it.
      if (!status.ok()) {
        EXPECT_TRUE(IsDiskTrouble(status) || IsSyncFailure(status)) << status;
      }
      const auto store = OpenForTrial(directory.Path());
      EXPECT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    }
  }
}

}  // namespace
}  // namespace terse
