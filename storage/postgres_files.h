// A FileSystem whose files are rows in a schema of a PostgreSQL database: for state that has to outlive a machine and
// that one process at a time may write, as a relay's client half has it. Internal to storage/: others open it with
// RunStores::OpenUpstream. Documented in storage/SCHEMA.md.
//
// Every call that changes something is one transaction, durable when it returns: SyncDirectory has nothing to do, and a
// file is there with all of its bytes, or as it was before. Opening makes the opener the only writer: from then on
// every call of an earlier one, of this process or another, is refused with FAILED_PRECONDITION and changes nothing,
// reads included.
#ifndef TERSE_STORAGE_POSTGRES_FILES_H_
#define TERSE_STORAGE_POSTGRES_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/file_system.h"
#include "core/id128.h"
#include "storage/postgres_db.h"
#include "storage/postgres_lease.h"

namespace terse {

// Paths are names and nothing else: a directory is there with its first file, and needs no making. A file that was
// created and not synced was never there.
//
// Statuses are those of FileSystem, with these meanings:
//   RESOURCE_EXHAUSTED   the server's disk is full, or it has no memory or connection left; nothing changed
//   UNAVAILABLE          the server could not be reached for so long as the patience lasts; nothing changed
//   UNKNOWN              likewise, and the connection was lost in a COMMIT of which nobody knows whether it happened.
//                        Within the patience a new connection finds that out, and the call goes on from there.
//   FAILED_PRECONDITION  another process has opened the files since, or the server was replaced by one that lacks the
//                        newest changes: the process must end, and its next start reads what there is
// and otherwise those of PostgresDb.
class PostgresFiles final : public FileSystem {
 public:
  // How long a call waits for a server that cannot be reached.
  static constexpr absl::Duration kPatience = absl::Seconds(10);

  // Opens the schema at that address (PostgresDb::Open), made where it is missing. FAILED_PRECONDITION when `lease` is
  // given, which must outlive the call, and not held; otherwise statuses of PostgresDb.
  static absl::StatusOr<std::unique_ptr<PostgresFiles>> Open(const std::string& address, const std::string& schema,
                                                             const PostgresLease* lease = nullptr,
                                                             absl::Duration patience = kPatience);

  // The bytes are kept in memory until Sync. The file must not outlive this object.
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Overwrite(const std::string& path) override { return Create(path); }
  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes = kMaxFileBytes) override;
  absl::StatusOr<std::string> ReadPart(const std::string& path, int64_t offset, int64_t bytes) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::Status MakeDirectory(const std::string&) override { return absl::OkStatus(); }
  // Only looks whether this is still the one that may write: opening is the lock.
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override;
  // None: no database of SQLite can be among these files.
  std::string SqliteVfs() const override { return ""; }

 private:
  class BufferedFile;

  PostgresFiles(std::string address, std::string schema, Id128 writer, absl::Duration patience);

  // Replaces the file, or makes it.
  absl::Status Write(const std::string& path, absl::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `body` in a transaction of the only writer; once more where the connection was lost and it did not happen.
  absl::Status Change(absl::FunctionRef<absl::Status(SqlDb&)> body) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `body`, which changes nothing, with what there is at one moment.
  absl::Status Look(absl::FunctionRef<absl::Status(SqlDb&)> body) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `work` on a connection until it returns anything but UNAVAILABLE, or began when the patience was at its end.
  absl::Status Patiently(absl::FunctionRef<absl::Status()> work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The number of the newest change, with a lock on it where `locking` says so. FAILED_PRECONDITION when another writer
  // has the files.
  absl::StatusOr<int64_t> NewestChange(const char* locking) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  const std::string schema_;
  const Id128 writer_;  // random, so that no writer of a history that is lost has the same
  const absl::Duration patience_;
  absl::Mutex mutex_;
  std::unique_ptr<PostgresDb> db_ ABSL_GUARDED_BY(mutex_);  // null: to be opened
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;             // that this writer made
};

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_FILES_H_
