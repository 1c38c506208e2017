// RunStore on PostgreSQL: everything that has to outlive a machine is in one schema of a database, a run in each. A
// coordinator's own directory has what it can make anew. Internal to storage/: others use storage/run_store.h.
#ifndef TERSE_STORAGE_POSTGRES_RUN_STORE_H_
#define TERSE_STORAGE_POSTGRES_RUN_STORE_H_

#include <memory>
#include <string>

#include "core/file_system.h"
#include "storage/postgres_db.h"
#include "storage/postgres_lease.h"
#include "storage/sql_run_store.h"

namespace terse {

class PostgresRunStore final : public SqlRunStore {
 public:
  // As RunStore::Open, of the schema at that address (PostgresDb::Open). `directory` has copies of the files that
  // clients download, and is made where it is missing. FAILED_PRECONDITION when `lease` is given and
  // not held.
  static absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& address, const std::string& schema,
                                                        const std::string& directory, FileSystem& files,
                                                        const MessageLimits& limits,
                                                        const PostgresLease* lease = nullptr);

  // Puts the files that came with the run, which are in the directory, into the database first.
  absl::Status CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) override;
  // Copies the run into a directory that RunStore::Open opens: a run on SQLite.
  absl::Status Backup(const std::string& directory) override;

 private:
  PostgresRunStore(std::string address, std::string schema, std::string directory, FileSystem& files,
                   std::unique_ptr<DirectoryLock> lock, Parts parts);

  // The run at one moment: a checkpoint, and a connection that sees the log after it.
  struct Pinned {
    Checkpoint checkpoint;
    std::unique_ptr<PostgresDb> database;
  };
  absl::StatusOr<Pinned> Pin() ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  absl::Status CopyInto(const std::string& directory) ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);

  const std::string address_;
  const std::string schema_;
  const std::string directory_;
  FileSystem& files_;
  const std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_RUN_STORE_H_
