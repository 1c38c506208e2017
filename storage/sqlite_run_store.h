// RunStore on SQLite, with large messages and checkpoints in files beside the database. Internal to storage/: others
// use storage/run_store.h. Opening is in sqlite_run_store.cc, copies are in sqlite_run_store_backup.cc.
#ifndef TERSE_STORAGE_SQLITE_RUN_STORE_H_
#define TERSE_STORAGE_SQLITE_RUN_STORE_H_

#include <memory>
#include <string>

#include "core/file_system.h"
#include "storage/sql_run_store.h"
#include "storage/sqlite_db.h"

namespace terse {
namespace run_store_internal {

// A database that no other process opens.
struct OwnedDatabase {
  std::unique_ptr<DirectoryLock> lock;
  std::unique_ptr<SqliteDb> db;
  int64_t epoch = 0;
};

// Everything that RunStore::Open does with the database.
absl::StatusOr<OwnedDatabase> OpenDatabase(const std::string& directory, FileSystem& files, RunStore::Depth depth);
// DIR/run.sqlite.
std::string DatabasePath(const std::string& directory);

}  // namespace run_store_internal

class SqliteRunStore final : public SqlRunStore {
 public:
  static absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory, FileSystem& files, Depth depth,
                                                        const MessageLimits& limits);
  ~SqliteRunStore() override;

  absl::Status Backup(const std::string& directory) override;

 private:
  SqliteRunStore(std::string directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock, Parts parts);

  // The run at one moment: a checkpoint, and a snapshot of the database that has the log after it.
  struct Pinned {
    Checkpoint checkpoint;
    std::shared_ptr<void> messages;
    std::unique_ptr<SqliteDb> database;
  };
  absl::StatusOr<Pinned> Pin() ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);
  // Backup, into a directory that is there; leaves what it made when it fails. Holds no lock while it copies.
  absl::Status CopyInto(const std::string& directory) ABSL_LOCKS_EXCLUDED(checkpoint_mutex_);

  const std::string directory_;
  FileSystem& files_;
  const std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_SQLITE_RUN_STORE_H_
