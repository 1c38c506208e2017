// The tables of run.sqlite, and migrations of any database. Internal to storage/; documented in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_SCHEMA_H_
#define TERSE_STORAGE_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite_db.h"

namespace terse {

// Newest schema that this program knows: PRAGMA user_version.
constexpr int kSchemaVersion = 14;

struct MigrationStep {
  const char* sql;
  absl::Status (*afterwards)(SqliteDb& db) = nullptr;  // in the same transaction
};

// Brings the database to the version after the last of `steps`, one transaction for each: step i leads from version i
// to i + 1. FAILED_PRECONDITION when a newer program wrote it; otherwise as SqliteDb.
absl::Status Migrate(SqliteDb& db, absl::Span<const MigrationStep> steps);
// Migrates run.sqlite to kSchemaVersion, as Migrate.
absl::Status MigrateSchema(SqliteDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_SCHEMA_H_
