// Flipped and truncated databases and checkpoints: refused by name, with what to do, or nothing that is stored differs.
// Damage that opening does not look at is refused when it is read, and damage that no read meets is found by the full
// check.
#include <fstream>
#include <functional>
#include <map>

#include "core/file_system.h"
#include "core/random.h"
#include "storage/integrity.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

std::string Bytes(const std::string& path) { return PosixFiles().Read(path).value(); }

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A store with rows in every table, closed in order.
class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = RunStore::Open(directory_.Path()).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    for (const char* name : {"a", "b", "c"}) ASSERT_OK(store->RegisterClient(name, 5).status());
    for (int64_t round = 1; round <= 6; ++round) {
      ASSERT_OK(RunRound(*store, round));
      ASSERT_OK(store->AddLedger({{round, 0, Direction::kUp, 400, 20, 30}, {round, 1, Direction::kDown, 1, 2, 3}}));
      ASSERT_OK(store->SetEvaluation(round, {0.5, -0.0, 0.75, 2.5}));
    }
    ASSERT_OK(store->SetAside(2, 77, "it failed"));
    ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(3), 2));
    ASSERT_OK(store->WriteCheckpoint(TestCheckpoint(6), 2));
    store.reset();
    whole_ = Bytes(database_);
    tables_ = DumpTables(directory_.Path());
  }

  // The first error of reading all that the store has.
  static absl::Status ReadEverything(RunStore& store) {
    absl::Status first;
    const auto note = [&first](const absl::Status& status) { first.Update(status); };
    note(store.Run().status());
    note(store.GetHead().status());
    note(store.StartHash().status());
    note(store.Clients().status());
    note(store.ClientTotals().status());
    note(store.Totals().status());
    note(store.Rounds(0, 100).status());
    note(store.Ledger(0, 100).status());
    note(store.Events(100).status());
    note(store.EventsAfter(0, 100).status());
    note(store.ReadLog(0, 6).status());
    for (int64_t client = 0; client < 3; ++client) note(store.ReadHistory(client).status());
    for (int64_t round = 1; round <= 6; ++round) {
      note(store.GetRoundState(round).status());
      note(store.BaseVersionOf(round).status());
      const auto fate = store.FateOf(TestUpdate(0, round, Id128()).update_id, 0, round);
      note(fate.status());
      // No verdict needs the fate of a later update (storage/ledger_rows.cc).
      EXPECT_TRUE(round > 1 || !fate.ok() || fate->has_value()) << "the fate of a first update is hidden";
    }
    note(store.NewestCheckpointFile().status());
    return first;
  }

  // Where the damaged database is refused. kNowhere: nothing that is stored differs.
  enum class Where { kNowhere, kOpening, kReading, kFullCheck };

  // Puts these bytes in the place of the database and opens the store.
  static absl::StatusOr<std::unique_ptr<RunStore>> OpenWith(const TempDirectory& original, const std::string& bytes,
                                                            const TempDirectory& copy, RunStore::Depth depth) {
    CopyDirectory(original.Path(), copy.Path());
    Write(copy.Path("run.sqlite"), bytes);
    return RunStore::Open(copy.Path(), PosixFiles(), depth);
  }

  // Returns whether the store with these bytes as its database is refused, and counts where.
  bool Refused(const std::string& bytes, const std::string& what) {
    const Where where = WhereRefused(bytes, what);
    ++count_[where];
    return where != Where::kNowhere;
  }

  Where WhereRefused(const std::string& bytes, const std::string& what) {
    TempDirectory copy;
    auto store = OpenWith(directory_, bytes, copy, RunStore::Depth::kRecent);
    if (!store.ok()) {
      ExpectGoodError(store.status(), copy, what);
      return Where::kOpening;
    }
    const absl::Status read = ReadEverything(**store);
    store->reset();
    if (!read.ok()) {
      ExpectGoodError(read, copy, what);
      return Where::kReading;
    }
    if (HasSameTables(copy)) return Where::kNowhere;
    const absl::Status whole = OpenWith(directory_, bytes, copy, RunStore::Depth::kEverything).status();
    ExpectGoodError(whole, copy, what);
    EXPECT_FALSE(whole.ok()) << what;
    return Where::kFullCheck;
  }

  // Reads without checksums; damage that SQLite itself meets is a difference.
  bool HasSameTables(const TempDirectory& copy) const {
    try {
      return WithoutEpoch(DumpTables(copy.Path())) == WithoutEpoch(tables_);
    } catch (const absl::BadStatusOrAccess&) {
      return false;
    }
  }

  static void ExpectGoodError(const absl::Status& status, const TempDirectory& copy, const std::string& what) {
    // As far as one can see, another program's: of a newer schema, or in a format that SQLite may only read.
    if (absl::IsFailedPrecondition(status)) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("schema version")) << what;
      return;
    }
    if (what == "flip at 18" && absl::IsPermissionDenied(status)) return;
    EXPECT_CODE(status, kDataLoss, copy.Path("run.sqlite")) << what;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("tersectl restore BACKUP --state DIR")) << what;
  }

  // Opening counts the epoch up, which changes the head's row.
  static std::string WithoutEpoch(std::string dump) {
    const size_t head = dump.find("head\n") + 5;
    const size_t model_hash = dump.find('|', dump.find('|', dump.find('|', head) + 1) + 1);
    return dump.erase(model_hash + 17, dump.find("rounds\n") - model_hash - 17);
  }

  const SystemCallWatch watch_{SkipSync};
  std::map<Where, int> count_;
  TempDirectory directory_;
  const std::string database_ = directory_.Path("run.sqlite");
  std::string whole_, tables_;
};

TEST_F(Damage, AFlippedBitOfTheDatabaseIsRefusedOrChangesNothing) {
  EXPECT_FALSE(Refused(whole_, "whole"));
  Random random(1);
  int refused = 0;
  int flips = 0;
  const auto flip = [&](size_t at) {
    std::string bytes = whole_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
    refused += Refused(bytes, absl::StrCat("flip at ", at)) ? 1 : 0;
    ++flips;
  };
  for (size_t at = 0; at < 100; ++at) flip(at);  // the header
  for (size_t at = 100; at < whole_.size(); at += 1 + random.Below(300)) {
    if (whole_[at] != 0) flip(at);  // zeros are mostly space that nothing uses
  }
  EXPECT_GT(refused, flips / 4);
  EXPECT_GT(count_[Where::kOpening], flips / 8);
  EXPECT_GT(count_[Where::kReading], 0);
}

TEST_F(Damage, EveryStoredValueIsCovered) {
  // Each of these stands in one row of one table.
  int at = 0;
  for (const std::string& value :
       {std::string("mnist"), std::string("config\0bytes", 12), TestHash(6).ToBytes(), TestHash(2).ToBytes(),
        TestUpdate(0, 6, Id128()).update_id.ToBytes(), TestUpdate(0, 4, Id128()).update_id.ToBytes(),
        std::string("message 5"), std::string("it failed"), std::string("client_set_aside"), std::string("update 3")}) {
    SCOPED_TRACE(++at);
    int found = 0;
    for (size_t i = whole_.find(value); i != std::string::npos; i = whole_.find(value, i + 1)) {
      std::string bytes = whole_;
      bytes[i] = static_cast<char>(bytes[i] ^ 1);
      found += Refused(bytes, value) ? 1 : 0;
    }
    EXPECT_GT(found, 0);
  }
}

// The rows of an old round are not looked at when a store is opened that was closed in order.
TEST_F(Damage, OfAnOldRowIsFoundWhenItIsReadAndByTheFullCheck) {
  TempDirectory copy;
  std::string bytes = whole_;
  const size_t at = bytes.find("message 2");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  const auto store = OpenWith(directory_, bytes, copy, RunStore::Depth::kRecent).value();
  EXPECT_OK(store->ReadLog(2, 6).status());
  const absl::Status read = store->ReadLog(0, 6).status();
  EXPECT_CODE(read, kDataLoss, copy.Path("run.sqlite") + " is damaged: a row of its table downstream_log");
  EXPECT_CODE(read, kDataLoss, "tersectl restore BACKUP --state DIR");
  TempDirectory other;
  EXPECT_CODE(OpenWith(directory_, bytes, other, RunStore::Depth::kEverything).status(), kDataLoss,
              "a row of its table downstream_log");
}

// After a crash nothing says that the rows since the last opening were verified.
TEST_F(Damage, OfARowThatACrashLeftIsFoundAtOpening) {
  for (const bool crashed : {true, false}) {
    TempDirectory original, copy;
    auto store = RunStore::Open(original.Path()).value();
    ASSERT_OK(store->CreateRun(TestRun(4), TestWeights(0)));
    for (int64_t round = 1; round <= 4; ++round) ASSERT_OK(RunRound(*store, round));
    if (!crashed) store.reset();
    CopyDirectory(original.Path(), copy.Path());
    ASSERT_OK(SqliteDb::Open(copy.Path("run.sqlite"), SqliteDb::Mode::kWriter).value()->FlushLog());
    std::string bytes = Bytes(copy.Path("run.sqlite"));
    const size_t at = bytes.find("message 2");
    ASSERT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    Write(copy.Path("run.sqlite"), bytes);
    const absl::Status status = RunStore::Open(copy.Path()).status();
    EXPECT_EQ(status.ok(), !crashed) << status;
    if (crashed) {
      EXPECT_CODE(status, kDataLoss, "a row of its table downstream_log");
    }
  }
}

// Each table that reads verify by themselves names the columns that its checksum covers.
TEST_F(Damage, EveryChecksumIsComputedFromItsColumns) {
  const auto db = SqliteDb::Open(database_, SqliteDb::Mode::kReader).value();
  for (const char* table :
       {"rounds", "round_totals", "scores", "plans", "metrics", "update_metrics", "updates", "first_updates", "refused",
        "client_totals", "ledger", "events", "downstream_log", "aggregates", "histories", "history_log"}) {
    Statement columns =
        db->Prepare(absl::StrCat("SELECT group_concat('t.' || name, ', ') FROM pragma_table_info('", table, "')"));
    ASSERT_TRUE(columns.Step().value());
    EXPECT_EQ(HasChecksum(table, "t").For(SqlEngine::kSqlite),
              absl::StrCat("t.checksum IS terse_checksum(", columns.GetText(0), ")"));
  }
}

TEST_F(Damage, ATruncatedDatabaseIsRefused) {
  // The last page may be that of a table without rows: SQLite reads the zeros at its end also where they are missing.
  const size_t end = whole_.find_last_not_of('\0') + 1;
  ASSERT_GT(end + 5000, whole_.size());
  for (size_t size = 0; size < end; size += size < 600 ? 37 : 2048) {
    EXPECT_TRUE(Refused(whole_.substr(0, size), absl::StrCat("cut at ", size)));
  }
  EXPECT_TRUE(Refused(std::string(5000, 'x'), "not a database"));
}

TEST_F(Damage, TablesOfAnotherKindAreRefused) {
  for (const char* sql : {"DROP TABLE events", "CREATE TABLE extra (i INTEGER)", "PRAGMA user_version = 0",
                          "ALTER TABLE clients RENAME COLUMN resets TO losses", "CREATE INDEX i ON rounds (state)"}) {
    TempDirectory copy;
    CopyDirectory(directory_.Path(), copy.Path());
    ASSERT_OK(SqliteDb::Open(copy.Path("run.sqlite"), SqliteDb::Mode::kWriter).value()->Script(sql));
    EXPECT_TRUE(Refused(Bytes(copy.Path("run.sqlite")), sql));
  }
}

TEST_F(Damage, ADamagedCheckpointFallsBackOrIsRefused) {
  const std::string newest = directory_.Path("checkpoints/0000000006.ckpt");
  const std::string oldest = directory_.Path("checkpoints/0000000003.ckpt");
  const std::string bytes = Bytes(newest);
  auto store = RunStore::Open(directory_.Path()).value();
  const auto expect_fallback = [&](const std::string& damaged) {
    Write(newest, damaged);
    const auto read = store->ReadNewestCheckpoint();
    ASSERT_OK(read.status());
    EXPECT_EQ(read->version, 3);
    EXPECT_EQ(read->weights, TestWeights(3));
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    expect_fallback(bytes.substr(0, i));
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    expect_fallback(flipped);
  }
  Write(oldest, "x");
  EXPECT_CODE(store->ReadNewestCheckpoint().status(), kDataLoss, directory_.Path("checkpoints"));
  EXPECT_CODE(store->ReadNewestCheckpoint().status(), kDataLoss, "tersectl restore BACKUP --state DIR");
}

}  // namespace
}  // namespace terse
