// A place for a run's store on either engine, for tests that hold for both.
#ifndef TERSE_TESTS_STORAGE_STORE_PLACE_H_
#define TERSE_TESTS_STORAGE_STORE_PLACE_H_

#include <memory>
#include <string>

#include "storage/postgres_db.h"
#include "storage/postgres_run_store.h"
#include "tests/storage/storage_testing.h"
#include "tests/testing/postgres_server.h"

namespace terse {

class StorePlace {
 public:
  explicit StorePlace(SqlEngine engine) : engine_(engine) {
    if (engine == SqlEngine::kPostgres) schema_ = PostgresServer::Shared().NewSchema();
  }

  absl::StatusOr<std::unique_ptr<RunStore>> Open(RunStore::Depth depth = RunStore::Depth::kRecent,
                                                 const MessageLimits& limits = MessageLimits()) const {
    if (engine_ == SqlEngine::kSqlite) return RunStore::Open(directory_.Path(), PosixFiles(), depth, limits);
    return PostgresRunStore::Open(PostgresServer::Shared().address(), schema_, directory_.Path(), PosixFiles(), limits);
  }

  // A connection beside the store's own.
  std::unique_ptr<SqlDb> Connect() const {
    if (engine_ == SqlEngine::kSqlite) {
      return SqliteDb::Open(directory_.Path("run.sqlite"), SqliteDb::Mode::kWriter).value();
    }
    return PostgresDb::Open(PostgresServer::Shared().address(), schema_, PostgresDb::Mode::kWriter).value();
  }

  // Every row of every table, in order. The store may be open.
  std::string Dump() const {
    if (engine_ == SqlEngine::kSqlite) return DumpTables(directory_.Path());
    const std::unique_ptr<SqlDb> db = Connect();
    std::string dump;
    for (const char* table : {"runs",           "head",
                              "start",          "rounds",
                              "clients",        "updates",
                              "first_updates",  "refused",
                              "scores",         "plans",
                              "metrics",        "update_metrics",
                              "round_totals",   "client_totals",
                              "ledger",         "events",
                              "downstream_log", "aggregates",
                              "message_chunks", "checkpoints",
                              "server_states",  "checkpoint_chunks",
                              "histories",      "history_log",
                              "retention",      "relay"}) {
      absl::StrAppend(&dump, table, "\n");
      Statement rows = db->Prepare(absl::StrCat("SELECT CAST(t AS TEXT) FROM ", table, " AS t ORDER BY 1"));
      while (rows.Step().value()) absl::StrAppend(&dump, rows.GetText(0), "\n");
    }
    return dump;
  }

  // How many rows there are.
  int64_t Count(const std::string& rows) const {
    const std::unique_ptr<SqlDb> db = Connect();
    Statement count = db->Prepare(absl::StrCat("SELECT COUNT(*) FROM ", rows));
    EXPECT_TRUE(count.Step().value());
    return count.GetInt(0);
  }

  const TempDirectory& directory() const { return directory_; }
  const std::string& schema() const { return schema_; }

 private:
  const SqlEngine engine_;
  TempDirectory directory_;
  std::string schema_;
};

inline std::string EngineName(const ::testing::TestParamInfo<SqlEngine>& info) {
  return info.param == SqlEngine::kSqlite ? "Sqlite" : "Postgres";
}

// Runs the TEST_Ps of the fixture, which is a TestWithParam<SqlEngine>, on both engines.
#define TERSE_ON_BOTH_ENGINES(fixture)                                                                          \
  INSTANTIATE_TEST_SUITE_P(OnBothEngines, fixture, ::testing::Values(SqlEngine::kSqlite, SqlEngine::kPostgres), \
                           EngineName)

}  // namespace terse

#endif  // TERSE_TESTS_STORAGE_STORE_PLACE_H_
