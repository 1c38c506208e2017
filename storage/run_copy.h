// Copies a run from one database into another, whatever their engines. Internal to storage/.
#ifndef TERSE_STORAGE_RUN_COPY_H_
#define TERSE_STORAGE_RUN_COPY_H_

#include "absl/status/status.h"
#include "storage/large_messages.h"
#include "storage/sql_db.h"

namespace terse {

// Puts every row of the run in `from` into `to`, whose tables are new, and its large messages into `to_messages`; not
// the checkpoints. Is a part of a snapshot of `from` and of a transaction on `to`. Memory for a few rows at a time.
// Statuses of both.
absl::Status CopyRun(SqlDb& from, LargeMessages& from_messages, SqlDb& to, LargeMessages& to_messages);

}  // namespace terse

#endif  // TERSE_STORAGE_RUN_COPY_H_
