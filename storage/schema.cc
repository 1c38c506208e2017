#include "storage/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/migrations.h"

namespace terse {
namespace {

constexpr MigrationStep kMigrations[] = {{kVersion1},
                                         {kVersion2},
                                         {kVersion3},
                                         {kVersion4},
                                         {kVersion5},
                                         {kVersion6},
                                         {kVersion7},
                                         {kVersion8},
                                         {kVersion9},
                                         {kVersion10},
                                         {kVersion11, PackBytes},
                                         {kVersion12},
                                         {kVersion13},
                                         {kVersion14}};
static_assert(std::size(kMigrations) == kSchemaVersion);

absl::StatusOr<int64_t> UserVersion(SqliteDb& db) {
  Statement statement = db.Prepare("PRAGMA user_version");
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.GetInt(0) : 0;
}

}  // namespace

absl::Status Migrate(SqliteDb& db, absl::Span<const MigrationStep> steps) {
  TERSE_ASSIGN_OR_RETURN(const int64_t begin, UserVersion(db));
  const int64_t newest = static_cast<int64_t>(steps.size());
  if (begin < 0 || begin > newest) {
    return absl::FailedPreconditionError(absl::StrCat(db.path(), " has schema version ", begin,
                                                      " and this program knows versions up to ", newest,
                                                      "; use the program that wrote it, or a newer one"));
  }
  for (int64_t version = begin; version < newest; ++version) {
    TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
      const MigrationStep& step = steps[version];
      TERSE_RETURN_IF_ERROR(db.Script(step.sql));
      if (step.afterwards != nullptr) TERSE_RETURN_IF_ERROR(step.afterwards(db));
      return db.Script(absl::StrCat("PRAGMA user_version=", version + 1));
    }));
  }
  return absl::OkStatus();
}

absl::Status MigrateSchema(SqliteDb& db) { return Migrate(db, kMigrations); }

}  // namespace terse
