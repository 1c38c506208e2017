// Checks that a database is whole. Internal to storage/; storage/SCHEMA.md says what is found and what is not.
#ifndef TERSE_STORAGE_INTEGRITY_H_
#define TERSE_STORAGE_INTEGRITY_H_

#include "absl/status/status.h"
#include "storage/sqlite_db.h"

namespace terse {

// Checks that pages, rows and indexes fit together, whatever the schema. DATA_LOSS with the file, the damage and the
// remedy; otherwise as SqliteDb.
absl::Status CheckPages(SqliteDb& db);

// Checks a database of the newest schema: its tables are the ones that this program makes, and every row has its
// checksum. Reads everything. Statuses as above.
absl::Status CheckRows(SqliteDb& db);

// Checks that every row that another row refers to is there. Statuses as above.
absl::Status CheckReferences(SqliteDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_INTEGRITY_H_
