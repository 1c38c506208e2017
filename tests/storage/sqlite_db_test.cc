#include "storage/sqlite_db.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/schema.h"
#include "tests/storage/storage_testing.h"

namespace terse {
namespace {

class SqliteDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto db = SqliteDb::Open(directory_.Path("test.sqlite"), SqliteDb::Mode::kWriter);
    ASSERT_OK(db.status());
    db_ = *std::move(db);
    ASSERT_OK(db_->Script("CREATE TABLE t (i INTEGER PRIMARY KEY, r REAL, s TEXT UNIQUE, b BLOB) STRICT"));
  }
  int64_t Count() {
    Statement statement = db_->Prepare("SELECT COUNT(*) FROM t");
    EXPECT_TRUE(statement.Step().value());
    return statement.GetInt(0);
  }

  TempDirectory directory_;
  std::unique_ptr<SqliteDb> db_;
};

// Modes of the database, its log and its index, as octal digits.
std::string Modes(const std::string& path) {
  std::string modes;
  for (const char* beside : {"", "-wal", "-shm"}) {
    struct stat info;
    const std::string file = absl::StrCat(path, beside);
    absl::StrAppendFormat(&modes, "%o ", stat(file.c_str(), &info) == 0 ? info.st_mode & 0777 : 0);
  }
  return modes;
}

TEST(SqliteDbFiles, AreTheirOwnersAloneWhateverTheUmask) {
  const TempDirectory directory;
  const std::string path = directory.Path("state.sqlite");
  const mode_t before = umask(0);
  auto first = SqliteDb::Open(path, SqliteDb::Mode::kWriter);
  umask(before);
  ASSERT_OK(first.status());
  ASSERT_OK((*first)->Script("CREATE TABLE t (i INTEGER)"));
  EXPECT_EQ(Modes(path), "600 600 600 ");
  // As an earlier release left them, with the log because its process died.
  for (const char* beside : {"", "-wal", "-shm"}) ASSERT_EQ(chmod(absl::StrCat(path, beside).c_str(), 0644), 0);
  ASSERT_OK(SqliteDb::Open(path, SqliteDb::Mode::kWriter).status());
  EXPECT_EQ(Modes(path), "600 600 600 ");
}

TEST_F(SqliteDbTest, ErrorsNameTheFile) {
  EXPECT_CODE(db_->Prepare("SELECT nonsense").Run(), kInternal, "test.sqlite");
  EXPECT_CODE(db_->Prepare("UPDATE t SET r = 1 WHERE i = ?").Int(9).RunForOne("nothing there"), kFailedPrecondition,
              "nothing there");
  EXPECT_CODE(SqliteDb::Open(directory_.Path("none/x.sqlite"), SqliteDb::Mode::kWriter).status(), kPermissionDenied,
              "none/x.sqlite");
}

TEST_F(SqliteDbTest, AFullDiskIsResourceExhausted) {
  ASSERT_OK(db_->Script("PRAGMA max_page_count = 4"));
  const std::string large(100000, 'x');
  EXPECT_CODE(db_->InTransaction([&] { return db_->Prepare("INSERT INTO t (b) VALUES (?)").Blob(large).Run(); }),
              kResourceExhausted, "free some space");
  EXPECT_EQ(Count(), 0);
  ASSERT_OK(db_->Script("PRAGMA max_page_count = 100000"));
  EXPECT_OK(db_->InTransaction([&] { return db_->Prepare("INSERT INTO t (b) VALUES (?)").Blob(large).Run(); }));
}

// No room on the disk helps, so this must not look like a full one, for which a run waits.
TEST_F(SqliteDbTest, AValueThatIsTooLargeIsNoFullDisk) {
  const absl::Status status = db_->InTransaction(
      [&] { return db_->Prepare("INSERT INTO t (b) VALUES (zeroblob(?))").Int(1'000'000'001).Run(); });
  EXPECT_CODE(status, kUnimplemented, "make one whose clients' histories are smaller");
  EXPECT_FALSE(IsDiskTrouble(status));
  EXPECT_EQ(Count(), 0);
}

TEST_F(SqliteDbTest, CommitsAreSyncedAndTheReaderCannotWrite) {
  const auto pragma = [](SqliteDb& db, const char* sql) {
    Statement statement = db.Prepare(sql);
    EXPECT_TRUE(statement.Step().value());
    return std::string(statement.GetText(0));
  };
  EXPECT_EQ(pragma(*db_, "PRAGMA journal_mode"), "wal");
  EXPECT_EQ(pragma(*db_, "PRAGMA synchronous"), "2");  // FULL
  EXPECT_EQ(pragma(*db_, "PRAGMA foreign_keys"), "1");
  auto reader = SqliteDb::Open(directory_.Path("test.sqlite"), SqliteDb::Mode::kReader);
  ASSERT_OK(reader.status());
  EXPECT_FALSE((*reader)->Script("INSERT INTO t (i) VALUES (1)").ok());
}

TEST_F(SqliteDbTest, ANewerSchemaIsRefused) {
  ASSERT_OK(MigrateSchema(*db_));
  ASSERT_OK(MigrateSchema(*db_));
  ASSERT_OK(db_->Script("PRAGMA user_version = 99"));
  EXPECT_CODE(MigrateSchema(*db_), kFailedPrecondition, "has schema version 99 and this program knows versions up to");
}

}  // namespace
}  // namespace terse
