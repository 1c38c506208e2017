// The errors of a PostgreSQL server and of libpq as statuses: their codes, what to do, and their messages on one line.
// Internal to storage/.
#ifndef TERSE_STORAGE_POSTGRES_ERRORS_H_
#define TERSE_STORAGE_POSTGRES_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace terse {

// The advice at the end of an error about damaged data.
inline constexpr char kPostgresRemedy[] =
    "; restore the database from a backup of the server, or `tersectl restore BACKUP` into a new run";

// The code for a server's five characters of SQLSTATE; INTERNAL for those that are an error of this program.
absl::StatusCode CodeOfSqlstate(absl::string_view sqlstate);

// The advice at the end of an error of that code; empty where there is none.
absl::string_view PostgresRemedyFor(absl::StatusCode code);

// A message of libpq without its line ends, behind which it indents its hints with a tab.
std::string OneLine(absl::string_view message);

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_ERRORS_H_
