// SQLite on a MemoryDisk keeps its promise with synchronous=FULL, through any power loss, and breaks it with NORMAL.
#include "tests/testing/memory_vfs.h"

#include <errno.h>
#include <sqlite3.h>

#include <array>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/simulation/settings.h"
#include "tests/testing/memory_disk.h"

namespace terse {
namespace {

constexpr int kRows = 12;
using Versions = std::array<int64_t, kRows>;  // the transaction that wrote each row last

class Database {
 public:
  ~Database() { sqlite3_close(db_); }

  bool Open(const MemoryDisk& disk, const std::string& synchronous) {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    return sqlite3_open_v2("/run.sqlite", &db_, kFlags, disk.SqliteVfs().c_str()) == SQLITE_OK &&
           Run("PRAGMA journal_mode=WAL") && Run(absl::StrCat("PRAGMA synchronous=", synchronous)) &&
           Run("PRAGMA wal_autocheckpoint=25") &&
           Run("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, version INTEGER, payload BLOB)");
  }

  bool Run(const std::string& sql) { return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK; }

  // One transaction; true when it was committed.
  bool Write(const Versions& from, const Versions& to) {
    if (!Run("BEGIN IMMEDIATE")) return false;
    for (int row = 0; row < kRows; ++row) {
      if (from[row] == to[row]) continue;
      if (!Run(absl::StrCat("INSERT OR REPLACE INTO t VALUES (", row, ", ", to[row], ", zeroblob(",
                            300 + to[row] * 997 % 5000, "))"))) {
        return false;
      }
    }
    return Run("COMMIT");
  }

  // False when it cannot be read.
  bool Read(Versions* versions) {
    versions->fill(0);
    const auto on_row = [](void* out, int, char** values, char**) {
      (*static_cast<Versions*>(out))[std::stoi(values[0])] = std::stoll(values[1]);
      return 0;
    };
    constexpr char kSql[] = "SELECT id, version FROM t WHERE length(payload) = 300 + version * 997 % 5000";
    return sqlite3_exec(db_, kSql, on_row, versions, nullptr) == SQLITE_OK;
  }

 private:
  sqlite3* db_ = nullptr;
};

// Power losses at any operation until one changes what was committed: the number of losses survived, at most `losses`.
int64_t LossesSurvived(int64_t losses, const std::string& synchronous, uint64_t seed) {
  Random random(seed);
  MemoryDisk disk(seed);
  Versions committed = {};
  int64_t next_version = 1;
  for (int64_t loss = 0; loss < losses; ++loss) {
    Versions attempted = committed;
    int64_t left = static_cast<int64_t>(random.Below(150));
    disk.set_fault([&](DiskOp, const std::string&) {
      if (left-- == 0) disk.LosePower(&random);
      return 0;
    });
    {
      Database db;
      bool going = db.Open(disk, synchronous);
      while (going) {
        attempted = committed;
        for (int row = 0; row < kRows; ++row) {
          if (random.Below(4) == 0) attempted[row] = next_version;
        }
        ++next_version;
        going = db.Write(committed, attempted);
        if (going) committed = attempted;
      }
    }
    disk.set_fault(nullptr);
    disk.Start();
    Database db;
    Versions found;
    if (!db.Open(disk, synchronous) || !db.Read(&found)) return loss;
    if (found != committed && found != attempted) return loss;
    committed = found;
  }
  return losses;
}

TEST(MemoryVfs, FullSurvivesPowerLosses) {
  const int64_t losses = SettingFromEnvironment("TERSE_POWER_LOSSES", 10'000);
  EXPECT_EQ(LossesSurvived(losses, "FULL", 1), losses);
}

TEST(MemoryVfs, NormalDoesNot) { EXPECT_LT(LossesSurvived(10'000, "NORMAL", 1), 10'000); }

TEST(MemoryVfs, SecondConnectionReadsWhileTheFirstWrites) {
  MemoryDisk disk;
  Database writer, reader;
  ASSERT_TRUE(writer.Open(disk, "FULL") && reader.Open(disk, "FULL"));
  Versions none = {}, one = {}, found;
  one.fill(1);
  ASSERT_TRUE(reader.Run("BEGIN") && reader.Read(&found));
  ASSERT_TRUE(writer.Write(none, one));
  EXPECT_TRUE(reader.Read(&found));
  EXPECT_EQ(found, none);
  ASSERT_TRUE(reader.Run("COMMIT") && reader.Read(&found));
  EXPECT_EQ(found, one);
  ASSERT_TRUE(writer.Run("BEGIN IMMEDIATE"));
  EXPECT_FALSE(reader.Run("BEGIN IMMEDIATE"));
}

TEST(MemoryVfs, DeadProcessDoesNotCheckpointWhenItCloses) {
  MemoryDisk disk;
  Versions none = {}, one = {}, found;
  one.fill(1);
  {
    Database db;
    ASSERT_TRUE(db.Open(disk, "FULL") && db.Write(none, one));
    disk.Kill();
    disk.Start();
    Database next;  // while the handles of the dead one are still open
    ASSERT_TRUE(next.Open(disk, "FULL") && next.Read(&found));
    EXPECT_EQ(found, one);
    disk.Kill();
  }
  EXPECT_GT(disk.SizeOf("/run.sqlite-wal"), 0);
}

TEST(MemoryVfs, FullDiskAndFailedSyncAreSqliteErrors) {
  MemoryDisk disk;
  Versions none = {}, one = {}, found;
  one.fill(1);
  Database db;
  ASSERT_TRUE(db.Open(disk, "FULL"));
  for (const DiskOp failing : {DiskOp::kWrite, DiskOp::kSync}) {
    disk.set_fault([=](DiskOp op, const std::string&) { return op == failing ? ENOSPC : 0; });
    EXPECT_FALSE(db.Write(none, one));
    disk.set_fault(nullptr);
    db.Run("ROLLBACK");
    ASSERT_TRUE(db.Read(&found));
    EXPECT_EQ(found, none);
  }
  EXPECT_TRUE(db.Write(none, one));
}

}  // namespace
}  // namespace terse
