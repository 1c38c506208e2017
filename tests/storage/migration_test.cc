// A database that an earlier release wrote (tests/golden/make_storage_golden.py) opens, keeps every row and goes on.
#include "storage/schema.h"
#include "tests/storage/storage_testing.h"
#include "tests/storage/system_calls.h"

namespace terse {
namespace {

struct Table {
  const char* name;
  int columns;  // of version 1
};
constexpr Table kTables[] = {{"runs", 7},   {"rounds", 11}, {"clients", 8},        {"updates", 8},
                             {"ledger", 6}, {"events", 6},  {"downstream_log", 3}, {"checkpoints", 4}};

class Migration : public ::testing::Test {
 protected:
  void SetUp() override { Fill(directory_.Path()); }
  // Fills a directory with the files of a run as version 1 left them.
  static void Fill(const std::string& directory) {
    std::filesystem::create_directories(directory + "/checkpoints");
    std::filesystem::copy_file(absl::StrCat(TERSE_GOLDEN_DIR, "/run_version_1.sqlite"), directory + "/run.sqlite",
                               std::filesystem::copy_options::overwrite_existing);
    ASSERT_OK(WriteFileSynced(PosixFiles(), directory + "/checkpoints/0000000000.ckpt",
                              {SerializeCheckpoint(TestCheckpoint(0))}));
  }
  // The columns that version 1 had.
  static std::vector<std::string> OldRows(const std::string& directory) {
    auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
    std::vector<std::string> rows;
    for (const Table& table : kTables) {
      Statement statement = db->Prepare(absl::StrCat("SELECT * FROM ", table.name));
      while (statement.Step().value()) {
        rows.push_back(table.name);
        for (int i = 0; i < table.columns; ++i) {
          absl::StrAppend(&rows.back(), "|", statement.IsNull(i) ? "null" : std::string(statement.GetBlob(i)));
        }
      }
    }
    return rows;
  }

  TempDirectory directory_;
};

TEST_F(Migration, KeepsEveryRowAndGoesOn) {
  const std::vector<std::string> before = OldRows(directory_.Path());
  ASSERT_EQ(before.size(), 1 + 4 + 3 + 5 + 12 + 2 + 2 + 1);
  auto store = RunStore::Open(directory_.Path()).value();
  EXPECT_EQ(OldRows(directory_.Path()), before);
  EXPECT_EQ(store->GetHead()->version, 2);
  EXPECT_EQ(store->GetHead()->model_hash, TestHash(2));
  EXPECT_EQ(store->GetHead()->epoch, 4);
  EXPECT_EQ((*store->Run())->state, RunState::kActive);
  EXPECT_EQ((*store->Run())->reason, "");
  const auto clients = store->Clients();
  for (const ClientRecord& client : *clients) {
    EXPECT_EQ(client.samples, 0);
    EXPECT_EQ(client.reliability, 1);
    EXPECT_EQ(client.failures, 0);
    EXPECT_EQ(client.set_aside_until_us, 0);
    EXPECT_EQ(client.set_aside_reason, "");
  }
  EXPECT_EQ(store->ReadNewestCheckpoint()->version, 0);
  EXPECT_EQ(store->ReadLog(0, 2)->back().downstream, "message 2");

  ASSERT_OK(store->CloseRound(4, {TestUpdate(0, 4, TestUpdate(0, 2, Id128()).update_id)}, 4001));
  Commit commit = TestCommit(4);
  commit.base_version = 2;
  ASSERT_OK(store->CommitRound(commit, true));
  ASSERT_OK(store->SetRunState(RunState::kPaused, "by hand"));
  EXPECT_EQ(store->GetHead()->version, 3);
  EXPECT_EQ(store->GetClient(0)->updates_applied, 3);
}

TEST_F(Migration, MakesTheTablesOfANewDatabase) {
  RunStore::Open(directory_.Path()).value().reset();
  TempDirectory fresh;
  RunStore::Open(fresh.Path()).value().reset();
  const auto schema = [](const std::string& directory) {
    auto db = SqliteDb::Open(directory + "/run.sqlite", SqliteDb::Mode::kReader).value();
    std::vector<std::string> texts;
    Statement rows = db->Prepare("SELECT COALESCE(sql, name) FROM sqlite_schema ORDER BY name");
    while (rows.Step().value()) texts.emplace_back(rows.GetText(0));
    return texts;
  };
  EXPECT_EQ(schema(directory_.Path()), schema(fresh.Path()));
}

TEST_F(Migration, IsWholeOrNotAtAll) {
  const std::vector<std::string> before = OldRows(directory_.Path());
  int failures = 0;
  for (int n = 1;; n += 5) {
    SCOPED_TRACE(n);
    TempDirectory copy;
    Fill(copy.Path());
    int left = n;
    absl::Status status;
    {
      const SystemCallWatch watch([&](absl::string_view call, const std::string& path) {
        if (call == "sync") return kSkipCall;
        return call == "write" && absl::StrContains(path, "run.sqlite") && --left == 0 ? EIO : 0;
      });
      status = RunStore::Open(copy.Path()).status();
    }
    if (left > 0) break;
    failures += status.ok() ? 0 : 1;
    EXPECT_OK(RunStore::Open(copy.Path()).status());
    EXPECT_EQ(OldRows(copy.Path()), before);
  }
  EXPECT_GT(failures, 3);
}

TEST_F(Migration, ANewerDatabaseIsRefusedByName) {
  ASSERT_OK(SqliteDb::Open(directory_.Path("run.sqlite"), SqliteDb::Mode::kWriter)
                .value()
                ->Script(absl::StrCat("PRAGMA user_version = ", kSchemaVersion + 1)));
  const absl::Status status = RunStore::Open(directory_.Path()).status();
  EXPECT_CODE(status, kFailedPrecondition, directory_.Path("run.sqlite"));
  EXPECT_CODE(status, kFailedPrecondition,
              absl::StrCat("has schema version ", kSchemaVersion + 1, " and this program knows versions up to ",
                           kSchemaVersion));
}

}  // namespace
}  // namespace terse
