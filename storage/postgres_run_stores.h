// RunStores in schemas of a PostgreSQL database. Internal to storage/ but for RunsInPostgres.
#ifndef TERSE_STORAGE_POSTGRES_RUN_STORES_H_
#define TERSE_STORAGE_POSTGRES_RUN_STORES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/run_stores.h"

namespace terse {

// The runs in the database at `address` (PostgresDb::Open), with directories below `state_directory`. The schema of the
// run NAME is terse_NAME. Connects once, so that an address that is wrong shows at once. FAILED_PRECONDITION when the
// state directory has runs of its own, which nobody would serve, or the database belongs to somebody else; otherwise as
// PostgresDb::Open. `lease` is how long the one that serves them may be silent until another process may. `relay` is
// the name of the relay whose runs they are; empty: a coordinator's. A database belongs to the first of these that
// opens it.
absl::StatusOr<std::unique_ptr<RunStores>> RunsInPostgres(const std::string& address,
                                                          const std::string& state_directory,
                                                          absl::Duration lease = absl::Seconds(3),
                                                          const std::string& relay = "");

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_RUN_STORES_H_
