#include "storage/integrity.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/schema.h"

namespace terse {
namespace {

absl::Status Damaged(const SqliteDb& db, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(db.path(), " is damaged: ", what, kDatabaseRemedy));
}

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

}  // namespace

absl::Status CheckPages(SqliteDb& db) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> findings, Column(db, "PRAGMA integrity_check(1)"));
  if (findings.size() == 1 && findings[0] == "ok") return absl::OkStatus();
  return Damaged(db, findings.empty() ? "its integrity check has no answer" : findings[0]);
}

absl::Status CheckRows(SqliteDb& db) {
  // The same for as long as the program runs.
  static const auto* const expected = new absl::StatusOr<std::vector<std::string>>(MakeSchema());
  TERSE_RETURN_IF_ERROR(expected->status());
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> found, SchemaText(db));
  if (found != **expected) return Damaged(db, "its tables are not the ones that this program makes");
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> tables,
                         Column(db, "SELECT name FROM sqlite_schema WHERE type = 'table'"));
  for (const std::string& table : tables) {
    // table_info leaves generated columns out, which is what the checksum covers.
    TERSE_ASSIGN_OR_RETURN(
        const std::vector<std::string> columns,
        Column(db, absl::StrCat("SELECT group_concat(name, ', ') FROM pragma_table_info('", table, "')")));
    Statement wrong = db.Prepare(
        absl::StrCat("SELECT 1 FROM ", table, " WHERE checksum IS NOT terse_checksum(", columns.at(0), ") LIMIT 1"));
    TERSE_ASSIGN_OR_RETURN(const bool found_one, wrong.Step());
    if (found_one) return Damaged(db, absl::StrCat("a row of its table ", table, " does not match its checksum"));
  }
  return absl::OkStatus();
}

absl::Status CheckReferences(SqliteDb& db) {
  Statement missing = db.Prepare("PRAGMA foreign_key_check");
  TERSE_ASSIGN_OR_RETURN(const bool any, missing.Step());
  if (!any) return absl::OkStatus();
  return Damaged(db, absl::StrCat("a row of its table ", missing.GetText(0), " refers to one of ", missing.GetText(2),
                                  " that is not there"));
}

}  // namespace terse
