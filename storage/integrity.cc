#include "storage/integrity.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "storage/schema.h"

namespace terse {
namespace {

// Tables that grow with the run, by the column of `verified` that says up to where their rows were verified. Rows that
// are read with their checksum whenever they are needed, and by nothing but their key, have none.
struct GrowingTable {
  absl::string_view name;
  const char* key;
  const char* verified;
};
constexpr GrowingTable kGrowingTables[] = {{"rounds", "id", "round"},
                                           {"round_totals", "round", "round"},
                                           {"scores", "round", "round"},
                                           {"plans", "round", "round"},
                                           {"metrics", "round", "round"},
                                           {"update_metrics", "round", "round"},
                                           {"updates", "round", "round"},
                                           {"ledger", "round", "round"},
                                           {"events", "id", "event"},
                                           {"downstream_log", "version", "version"},
                                           {"aggregates", "version", "version"},
                                           {"histories", nullptr, nullptr},
                                           {"history_log", nullptr, nullptr}};

// The columns that a checksum covers, for the tables whose rows are read with it.
struct CoveredColumns {
  absl::string_view table;
  absl::string_view columns;
};
constexpr CoveredColumns kCoveredColumns[] = {
    {"rounds",
     "id,state,base_version,opened_us,closed_us,settled_us,updates,train_us_max,train_loss,accuracy,test_loss"},
    {"round_totals", "round,update_bytes,dense_up,payload_up,wire_up,dense_down,payload_down,wire_down"},
    {"scores", "round,top5,perplexity"},
    {"plans", "round,local_steps,choice,first_iteration,why"},
    {"metrics", "round,kind,name,mean,clients,samples"},
    {"update_metrics", "round,client,metrics"},
    {"updates", "round,client,update_id,prev_applied,content_hash,payload_bytes,train_us,loss,samples"},
    {"first_updates", "update_id,round,client"},
    {"refused", "update_id,round,client,reason"},
    {"client_totals", "block,sums"},
    {"ledger", "id,round,sums"},
    {"events", "id,time_us,kind,round,client,detail"},
    {"downstream_log", "version,model_hash,segment,offset,length,hash,message"},
    {"aggregates", "version,segment,offset,length,hash,message"},
    {"histories", "client,messages,state"},
    {"history_log", "client,number,message"}};

absl::Status Damaged(const SqlDb& db, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(db.place(), " is damaged: ", what, db.remedy()));
}

absl::Status UnknownVerified(const SqlDb& db) { return Damaged(db, "it does not say up to where it was verified"); }

// The first column of every row.
absl::StatusOr<std::vector<std::string>> Column(SqliteDb& db, const std::string& sql) {
  std::vector<std::string> values;
  Statement rows = db.Prepare(sql);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return values;
    values.emplace_back(rows.GetText(0));
  }
}

absl::StatusOr<std::vector<std::string>> SchemaText(SqliteDb& db) {
  return Column(db,
                "SELECT concat FROM (SELECT type || ' ' || name || ' ' || COALESCE(sql, '') AS concat "
                "FROM sqlite_schema) ORDER BY concat");
}

// Returns the schema that the migrations make of an empty database.
absl::StatusOr<std::vector<std::string>> MakeSchema() {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> fresh, SqliteDb::Open(":memory:", SqliteDb::Mode::kWriter));
  TERSE_RETURN_IF_ERROR(MigrateSchema(*fresh));
  return SchemaText(*fresh);
}

// The first schema had no checksums.
absl::StatusOr<std::vector<std::string>> TablesWithChecksums(SqliteDb& db) {
  return Column(db,
                "SELECT t.name FROM sqlite_schema AS t JOIN pragma_table_xinfo(t.name) AS c "
                "WHERE t.type = 'table' AND c.name = 'checksum'");
}

// Checks that the tables are the ones that this program makes.
absl::Status CheckTables(SqliteDb& db) {
  // The same for as long as the program runs.
  static const auto* const expected = new absl::StatusOr<std::vector<std::string>>(MakeSchema());
  TERSE_RETURN_IF_ERROR(expected->status());
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> found, SchemaText(db));
  return found == **expected ? absl::OkStatus() : Damaged(db, "its tables are not the ones that this program makes");
}

absl::Status WrongChecksum(const SqlDb& db, absl::string_view table) {
  return Damaged(db, absl::StrCat("a row of its table ", table, " does not match its checksum"));
}

// Checks the rows for which `condition` holds.
absl::Status CheckRowsOf(SqliteDb& db, absl::string_view table, absl::string_view condition) {
  // table_info leaves generated columns out, which is what the checksum covers.
  TERSE_ASSIGN_OR_RETURN(
      const std::vector<std::string> columns,
      Column(db, absl::StrCat("SELECT group_concat(name, ', ') FROM pragma_table_info('", table, "')")));
  Statement wrong = db.Prepare(absl::StrCat("SELECT 1 FROM ", table, " WHERE checksum IS NOT terse_checksum(",
                                            columns.at(0), ") AND (", condition, ") LIMIT 1"));
  TERSE_ASSIGN_OR_RETURN(const bool found, wrong.Step());
  return found ? WrongChecksum(db, table) : absl::OkStatus();
}

// Runs SQLite's integrity check of the database, or of one table and its indexes.
absl::Status RunIntegrityCheck(SqliteDb& db, absl::string_view argument) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> findings,
                         Column(db, absl::StrCat("PRAGMA integrity_check(", argument, ")")));
  if (findings.size() == 1 && findings[0] == "ok") return absl::OkStatus();
  return Damaged(db, findings.empty() ? "its integrity check has no answer" : findings[0]);
}

const GrowingTable* FindGrowing(absl::string_view table) {
  const auto* found = std::find_if(std::begin(kGrowingTables), std::end(kGrowingTables),
                                   [table](const GrowingTable& growing) { return growing.name == table; });
  return found == std::end(kGrowingTables) ? nullptr : found;
}

}  // namespace

absl::Status CheckPages(SqliteDb& db) { return RunIntegrityCheck(db, "1"); }

absl::Status CheckChecksums(SqliteDb& db) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesWithChecksums(db));
  for (const std::string& table : tables) TERSE_RETURN_IF_ERROR(CheckRowsOf(db, table, "true"));
  return absl::OkStatus();
}

absl::Status CheckRows(SqliteDb& db) {
  TERSE_RETURN_IF_ERROR(CheckTables(db));
  return CheckChecksums(db);
}

absl::Status CheckRecent(SqliteDb& db) {
  TERSE_RETURN_IF_ERROR(CheckTables(db));
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> tables, TablesWithChecksums(db));
  for (const std::string& table : tables) {
    if (FindGrowing(table) != nullptr) continue;
    TERSE_RETURN_IF_ERROR(RunIntegrityCheck(db, table));
    TERSE_RETURN_IF_ERROR(CheckRowsOf(db, table, "true"));
  }
  for (const GrowingTable& table : kGrowingTables) {
    if (table.key == nullptr) continue;
    // The newest rows may have changed since.
    TERSE_RETURN_IF_ERROR(
        CheckRowsOf(db, table.name, absl::StrCat(table.key, " >= (SELECT ", table.verified, " FROM verified)")));
  }
  // So may the traffic that belongs to no round.
  return CheckRowsOf(db, "ledger", "round = 0");
}

absl::StatusOr<int64_t> VerifiedVersion(SqliteDb& db) {
  Statement row = db.Prepare("SELECT version FROM verified");
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return UnknownVerified(db);
  return row.GetInt(0);
}

absl::Status NoteVerified(SqlDb& db) {
  TERSE_RETURN_IF_ERROR(
      db.Prepare("UPDATE verified SET round = (SELECT COALESCE(MAX(id), 0) FROM rounds), "
                 "event = (SELECT COALESCE(MAX(id), 0) FROM events), version = (SELECT version FROM head)")
          .Run());
  TERSE_ASSIGN_OR_RETURN(const int64_t changes, db.Changes());
  return changes == 1 ? absl::OkStatus() : UnknownVerified(db);
}

SqlText HasChecksum(absl::string_view table, absl::string_view alias) {
  for (const CoveredColumns& covered : kCoveredColumns) {
    if (covered.table != table) continue;
    const std::string columns = absl::StrJoin(
        absl::StrSplit(covered.columns, ','), ", ",
        [alias](std::string* out, absl::string_view column) { absl::StrAppend(out, alias, ".", column); });
    return SqlText(absl::StrCat(alias, ".checksum IS terse_checksum(", columns, ")"), "true");
  }
  return "false";  // so that no row of a table without an entry is believed
}

absl::Status ExpectChecksum(const SqlDb& db, const Statement& row, int column, absl::string_view table) {
  return row.GetInt(column) == 1 ? absl::OkStatus() : WrongChecksum(db, table);
}

absl::Status CheckReferences(SqliteDb& db) {
  Statement missing = db.Prepare("PRAGMA foreign_key_check");
  TERSE_ASSIGN_OR_RETURN(const bool any, missing.Step());
  if (!any) return absl::OkStatus();
  return Damaged(db, absl::StrCat("a row of its table ", missing.GetText(0), " refers to one of ", missing.GetText(2),
                                  " that is not there"));
}

}  // namespace terse
