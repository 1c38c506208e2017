// A thin RAII wrapper over one SQLite connection: prepared statements that are kept, transactions, and absl::Status.
// Internal to storage/.
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
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/id128.h"

struct sqlite3;
struct sqlite3_stmt;

namespace terse {

// The advice at the end of an error about a damaged database.
inline constexpr char kDatabaseRemedy[] =
    "; restore a backup with `tersectl restore BACKUP --state DIR`, or name an empty directory to start a new run";

class SqliteDb;

// A prepared statement, borrowed from its connection until destruction. Parameters are bound in order. An error is kept
// and comes out of Step or Run, so calls chain: db.Prepare("UPDATE ... ?").Int(7).Id(id).Run().
class Statement {
 public:
  Statement(SqliteDb* db, sqlite3_stmt* stmt, absl::Status status);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Int(int64_t value);
  Statement& Null();
  // SQLite has no NaN: it is stored as NULL.
  Statement& Real(double value);
  // The bytes must live until the statement is destroyed.
  Statement& Text(absl::string_view value);
  Statement& Blob(absl::string_view value);
  Statement& Id(const Id128& value);

  // True: there is a row, read with the Get functions. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement that returns no rows.
  absl::Status Run();
  // Acts as Run, and returns FAILED_PRECONDITION with `otherwise` unless exactly one row changed.
  absl::Status RunForOne(absl::string_view otherwise);

  // Columns of the current row, from 0. The views live until the next Step.
  int64_t GetInt(int column) const;
  double GetReal(int column) const;  // NULL gives NaN
  bool IsNull(int column) const;
  absl::string_view GetText(int column) const;
  absl::string_view GetBlob(int column) const;
  Id128 GetId(int column) const;  // the schema guarantees 16 bytes; anything else gives the zero id

 private:
  void Check(int result);

  SqliteDb* const db_;
  sqlite3_stmt* const stmt_;
  absl::Status status_;
  int bound_ = 0;
};

// Not thread-safe. Statements must not outlive it, and the same SQL must not be prepared twice at a time.
class SqliteDb {
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
  ~SqliteDb();
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  // `sql` is prepared at the first call and kept.
  Statement Prepare(absl::string_view sql);
  // Runs statements that need neither parameters nor speed.
  absl::Status Script(const std::string& sql);

  // BEGIN IMMEDIATE. After UNKNOWN the connection refuses every further transaction until the database is opened again.
  absl::Status Begin();
  // COMMIT when `status` is OK; otherwise, and when that fails, everything since Begin is rolled back, and the error
  // returned. UNKNOWN may also come from moving the log into the database after a COMMIT that succeeded.
  absl::Status End(absl::Status status);
  // Begin, `body`, End.
  absl::Status InTransaction(absl::FunctionRef<absl::Status()> body);
  // Refuses every further transaction with this status, which is UNKNOWN: a sync of a file beside the database failed.
  void Break(const absl::Status& sync_failure);
  // Moves the whole write-ahead log into the database and empties it.
  absl::Status FlushLog();
  // From now on this connection reads the database as it is now, whatever others write.
  absl::Status PinSnapshot();
  // Replaces everything in this database by what `source` holds at the moment, or held at its PinSnapshot, in one
  // transaction. `source` may be written through other connections meanwhile.
  absl::Status CopyFrom(SqliteDb& source);

  // Rows that the last INSERT, UPDATE or DELETE changed.
  int64_t Changes() const;
  const std::string& path() const { return path_; }
  // The status for a result code of the last call.
  absl::Status Error(int result);

 private:
  SqliteDb(const std::string& path, sqlite3* db) : path_(path), db_(db) {}
  absl::Status Commit();
  friend class Statement;

  const std::string path_;
  sqlite3* const db_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  absl::Status broken_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_SQLITE_DB_H_
