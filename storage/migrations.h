// The SQL of each step of run.sqlite's schema: kVersionN leads from version N - 1 to N. A step that was released never
// changes. Internal to storage/; documented in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_MIGRATIONS_H_
#define TERSE_STORAGE_MIGRATIONS_H_

#include "absl/status/status.h"
#include "storage/sqlite_db.h"

namespace terse {

extern const char kVersion1[];
extern const char kVersion2[];
extern const char kVersion3[];
extern const char kVersion4[];
extern const char kVersion5[];
extern const char kVersion6[];
extern const char kVersion7[];
extern const char kVersion8[];
extern const char kVersion9[];
extern const char kVersion10[];
extern const char kVersion11[];
extern const char kVersion12[];
extern const char kVersion13[];
extern const char kVersion14[];

// The part of step 11 that SQL cannot do, in its transaction. Returns the statuses of SqliteDb.
absl::Status PackBytes(SqliteDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_MIGRATIONS_H_
