// SqlDb on one SQLite connection. Internal to storage/.
//
// Statuses of every call, with the database's path and SQLite's message:
//   RESOURCE_EXHAUSTED   the disk is full (SQLITE_FULL), or there is no memory
//   UNIMPLEMENTED        a value is larger than SQLite takes (SQLITE_TOOBIG): trying again cannot help
//   UNAVAILABLE          an input/output error of the disk (SQLITE_IOERR), or another process keeps the database locked
//   UNKNOWN              a sync failed, or a COMMIT in such a way that a restart may find the transaction or not
//                        (core/file_system.h, IsSyncFailure); no transaction begins any more
//   DATA_LOSS            the file is damaged or is no database (SQLITE_CORRUPT, SQLITE_NOTADB)
//   PERMISSION_DENIED    the file may not be opened or written
//   FAILED_PRECONDITION  a constraint of the schema does not hold
//   INTERNAL             anything else: an error in this program
#ifndef TERSE_STORAGE_SQLITE_DB_H_
#define TERSE_STORAGE_SQLITE_DB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/sql_db.h"

struct sqlite3;
struct sqlite3_stmt;

namespace terse {

// The advice at the end of an error about a damaged database.
inline constexpr char kDatabaseRemedy[] =
    "; restore a backup with `tersectl restore BACKUP --state DIR`, or name an empty directory to start a new run";

// Not thread-safe. Statements must not outlive it, and the same SQL must not be prepared twice at a time.
class SqliteDb final : public SqlDb {
 public:
  // kObserver reads a database that another process has open, and changes no byte of its files, the index in shared
  // memory included.
  enum class Mode { kWriter, kReader, kObserver };

  // Opens or (writer) creates the file, on the disk of the VFS named `vfs` (empty: SQLite's default), with WAL,
  // synchronous=FULL, foreign keys, a busy timeout of five seconds and the SQL function terse_checksum(value, ...). A
  // writer's files, those that SQLite keeps beside the database too, are private to their owner (mode 0600), whatever
  // the umask is and whoever made them.
  static absl::StatusOr<std::unique_ptr<SqliteDb>> Open(const std::string& path, Mode mode,
                                                        const std::string& vfs = "");
  ~SqliteDb() override;

  SqlEngine engine() const override { return SqlEngine::kSqlite; }
  const std::string& place() const override { return path_; }
  absl::string_view remedy() const override { return kDatabaseRemedy; }
  using SqlDb::Prepare;
  Statement Prepare(absl::string_view sql) override;
  absl::Status Script(const std::string& sql) override;
  // BEGIN IMMEDIATE. After UNKNOWN the connection refuses every further transaction until the database is opened again.
  absl::Status Begin() override;
  // UNKNOWN may also come from moving the log into the database after a COMMIT that succeeded.
  absl::Status End(absl::Status status) override;
  absl::Status BeginReading() override;
  absl::Status EndReading() override;
  // `sync_failure` is UNKNOWN: a sync of a file beside the database failed.
  void Break(const absl::Status& sync_failure) override;
  absl::StatusOr<int64_t> Changes() override;

  // Moves the whole write-ahead log into the database and empties it.
  absl::Status FlushLog();
  // From now on this connection reads the database as it is now, whatever others write.
  absl::Status PinSnapshot();
  // Replaces everything in this database by what `source` holds at the moment, or held at its PinSnapshot, in one
  // transaction. `source` may be written through other connections meanwhile.
  absl::Status CopyFrom(SqliteDb& source);

  const std::string& path() const { return path_; }
  // The status for a result code of the last call.
  absl::Status Error(int result);

 private:
  SqliteDb(const std::string& path, sqlite3* db) : path_(path), db_(db) {}
  absl::Status Commit();

  const std::string path_;
  sqlite3* const db_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  absl::Status broken_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_SQLITE_DB_H_
