// Whether a database is whole. Internal to storage/; what is found and what is not is in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_INTEGRITY_H_
#define TERSE_STORAGE_INTEGRITY_H_

#include "absl/status/status.h"
#include "storage/sqlite_db.h"

namespace terse {

// Whether pages, rows and indexes fit together, whatever the schema. DATA_LOSS with the file, what is wrong and what to
// do; otherwise as SqliteDb.
absl::Status CheckPages(SqliteDb& db);

// For a database of the newest schema: whether its tables are the ones that this program makes, and every row has its
// checksum. Reads everything. Statuses as above.
absl::Status CheckRows(SqliteDb& db);

// Whether every row that a row refers to is there. Statuses as above.
absl::Status CheckReferences(SqliteDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_INTEGRITY_H_
