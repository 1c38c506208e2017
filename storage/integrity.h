// Checks that a database is whole. Internal to storage/; storage/SCHEMA.md says what is found and what is not.
#ifndef TERSE_STORAGE_INTEGRITY_H_
#define TERSE_STORAGE_INTEGRITY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/sqlite_db.h"

namespace terse {

// Checks that pages, rows and indexes fit together, whatever the schema. DATA_LOSS with the file, the damage and the
// remedy; otherwise as SqliteDb.
absl::Status CheckPages(SqliteDb& db);

// Checks that every row has its checksum, in the tables that have one, whatever the schema. Statuses as above.
absl::Status CheckChecksums(SqliteDb& db);

// Checks a database of the newest schema: its tables are the ones that this program makes, and every row has its
// checksum. Reads everything. Statuses as above.
absl::Status CheckRows(SqliteDb& db);

// Checks a database of the newest schema as far as an opening needs: its tables, all that a run answers clients from
// (with the indexes that lead to it), and of the tables that grow with the run the rows that came or changed since
// NoteVerified. Costs the fleet and those rows, not the length of the run. What it leaves out is checked where it is
// read (ExpectChecksum) and by CheckPages and CheckRows. Statuses as above.
absl::Status CheckRecent(SqliteDb& db);
// Returns the version from whose rows on CheckRecent looks. Statuses as above.
absl::StatusOr<int64_t> VerifiedVersion(SqliteDb& db);
// Notes, in the caller's transaction, that the database is verified up to its newest rows: a CheckRecent was OK, or
// this process wrote them and closes the database in order.
absl::Status NoteVerified(SqlDb& db);

// Checks that every row that another row refers to is there. Statuses as above.
absl::Status CheckReferences(SqliteDb& db);

// SQL that is true where the row of `table`, which the query calls `alias`, has its checksum. PostgreSQL has checksums
// of its own, of every page (storage/SCHEMA.md): there it is always true.
SqlText HasChecksum(absl::string_view table, absl::string_view alias);
// DATA_LOSS, as CheckRows would say it, unless this column of the row, a HasChecksum, is 1.
absl::Status ExpectChecksum(const SqlDb& db, const Statement& row, int column, absl::string_view table);

}  // namespace terse

#endif  // TERSE_STORAGE_INTEGRITY_H_
