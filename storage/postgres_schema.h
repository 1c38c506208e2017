// The tables of a run in a schema of a PostgreSQL database, and their migrations. Internal to storage/; documented in
// storage/SCHEMA.md.
#ifndef TERSE_STORAGE_POSTGRES_SCHEMA_H_
#define TERSE_STORAGE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "storage/postgres_db.h"

namespace terse {

// Makes the schema and its tables where they are missing, and brings those of an older program to this one's version
// (kSchemaVersion, storage/schema.h), each step in a transaction. One program at a time does. FAILED_PRECONDITION when
// a newer program wrote them; otherwise as PostgresDb.
absl::Status MigratePostgres(PostgresDb& db);

// Lets nobody else make schemas or tables until the end of the transaction on `db`: two programs that make the same one
// at once would refuse each other.
absl::Status LockMigrations(PostgresDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_SCHEMA_H_
