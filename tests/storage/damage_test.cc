// Flipped and truncated databases and checkpoints: refused by name, with what to do, or nothing that is stored differs.
#include <fstream>
#include <functional>

#include "core/file_system.h"
#include "core/random.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

const SystemCallHook kNoSync = [](absl::string_view call, const std::string&) {
  return call == "sync" ? kSkipCall : 0;
};

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

  // Opens the store with these bytes as its database. Returns whether it was refused.
  bool Refused(const std::string& bytes, const std::string& what) {
    TempDirectory copy;
    CopyDirectory(directory_.Path(), copy.Path());
    Write(copy.Path("run.sqlite"), bytes);
    const absl::Status status = RunStore::Open(copy.Path()).status();
    if (status.ok()) {
      EXPECT_EQ(WithoutEpoch(DumpTables(copy.Path())), WithoutEpoch(tables_)) << what;
      return false;
    }
    // As far as one can see, another program's: of a newer schema, or in a format that SQLite may only read.
    if (absl::IsFailedPrecondition(status)) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("schema version")) << what;
      return true;
    }
    if (what == "flip at 18" && absl::IsPermissionDenied(status)) return true;
    EXPECT_CODE(status, kDataLoss, copy.Path("run.sqlite")) << what;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("tersectl restore BACKUP --state DIR")) << what;
    return true;
  }

  // Opening counts the epoch up, which changes the head's row.
  static std::string WithoutEpoch(std::string dump) {
    const size_t head = dump.find("head\n") + 5;
    const size_t model_hash = dump.find('|', dump.find('|', dump.find('|', head) + 1) + 1);
    return dump.erase(model_hash + 17, dump.find("rounds\n") - model_hash - 17);
  }

  const SystemCallWatch watch_{kNoSync};
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
  RecordProperty("flips", flips);
  RecordProperty("refused", refused);
  EXPECT_GT(refused, flips / 4);
}

TEST_F(Damage, EveryStoredValueIsCovered) {
  // Each of these stands in one row of one table.
  int at = 0;
  for (const std::string& value :
       {std::string("mnist"), std::string("config\0bytes", 12), TestHash(6).ToBytes(), TestHash(2).ToBytes(),
        TestUpdate(0, 6, Id128()).update_id.ToBytes(), TestUpdate(0, 4, Id128()).update_id.ToBytes(),
        std::string("message 5"), std::string("it failed"), std::string("client_set_aside")}) {
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

TEST_F(Damage, ATruncatedDatabaseIsRefused) {
  for (size_t size = 0; size < whole_.size(); size += size < 600 ? 37 : 2048) {
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
