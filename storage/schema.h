// The tables of run.sqlite and their migrations. Internal to storage/; documented in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_SCHEMA_H_
#define TERSE_STORAGE_SCHEMA_H_

#include "absl/status/status.h"
#include "storage/sqlite_db.h"

namespace terse {

// Newest schema that this program knows: PRAGMA user_version.
constexpr int kSchemaVersion = 7;

// Brings the database to kSchemaVersion, one transaction for each step. FAILED_PRECONDITION when a newer program wrote
// it; otherwise as SqliteDb.
absl::Status MigrateSchema(SqliteDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_SCHEMA_H_
