#include "storage/sqlite_db.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/fault.h"
#include "core/file_modes.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/byte_io.h"

namespace terse {
namespace {

constexpr int kBusyTimeoutMs = 5000;
// The write-ahead log is moved into the database when it has this many pages.
constexpr int kCheckpointPages = 1000;

bool IsSyncError(int result) { return result == SQLITE_IOERR_FSYNC || result == SQLITE_IOERR_DIR_FSYNC; }

absl::StatusCode CodeOf(int result) {
  if (IsSyncError(result)) return absl::StatusCode::kUnknown;
  switch (result & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_TOOBIG:
      return absl::StatusCode::kUnimplemented;
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::string_view RemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "; free some space on that disk";
    case absl::StatusCode::kUnavailable:
      return "; check the disk, and that no other program has the file open";
    case absl::StatusCode::kUnknown:
      return "; what is on the disk is not known: check it, then start again";
    case absl::StatusCode::kUnimplemented:
      return "; a row of SQLite has at most 10^9 bytes, whatever room the disk has: stop this run, and make one whose "
             "clients' histories are smaller";
    case absl::StatusCode::kDataLoss:
      return kDatabaseRemedy;
    case absl::StatusCode::kPermissionDenied:
      return "; check the owner and the mode of the file and its directory";
    default:
      return "";
  }
}

// SQLite rolls a transaction back in memory when its COMMIT fails. Whether a restart would find it in the write-ahead
// log all the same is clear only when the log's file was not written to the end: a failed write or read comes before
// the sync, anything else (the log's index in shared memory, no memory) may come after it.
bool OutcomeIsKnown(int result) {
  switch (result) {
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_READ:
    case SQLITE_IOERR_SHORT_READ:
      return true;
    default:
      return (result & 0xff) != SQLITE_IOERR && (result & 0xff) != SQLITE_NOMEM;
  }
}

// SQLite's own automatic checkpoint swallows its errors, and with them a failed sync.
int OnCommitted(void*, sqlite3* db, const char* name, int pages) {
  if (pages < kCheckpointPages) return SQLITE_OK;
  const int result = sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  // Any other failure left the log as it is; the next commit tries again.
  return IsSyncError(result) ? result : SQLITE_OK;
}

// terse_checksum(value, ...): 64 bits of XXH3 over the values and their types.
void Checksum(sqlite3_context* context, int count, sqlite3_value** values) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const int type = sqlite3_value_type(values[i]);
    bytes.push_back(static_cast<char>(type));
    if (type == SQLITE_INTEGER) {
      PutField(&bytes, static_cast<int64_t>(sqlite3_value_int64(values[i])));
    } else if (type == SQLITE_FLOAT) {
      PutField(&bytes, sqlite3_value_double(values[i]) + 0.0);  // SQLite stores -0.0 as 0.0
    } else if (type != SQLITE_NULL) {
      const auto* data = static_cast<const char*>(sqlite3_value_blob(values[i]));
      const auto size = data == nullptr ? 0 : static_cast<size_t>(sqlite3_value_bytes(values[i]));
      PutField(&bytes, HashBytes(absl::string_view(data, size)));
    }
  }
  sqlite3_result_int64(context, static_cast<int64_t>(HashBytes(bytes).low));
}

int FlagsOf(SqliteDb::Mode mode) {
  switch (mode) {
    case SqliteDb::Mode::kWriter:
      return SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case SqliteDb::Mode::kReader:
      return SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    case SqliteDb::Mode::kObserver:
      return SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  }
  return 0;
}

// SQLite takes settings of a connection's files from a URI alone.
std::string ObserverUri(const std::string& path) {
  return absl::StrCat("file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}),
                      "?readonly_shm=1");
}

// SQLite makes a database readable for everybody whom the umask lets, and gives what it keeps beside it the same mode.
// So the file is there, and private, before SQLite sees it. It is opened only when nobody can have it open: to close it
// would drop the locks that this process has on it.
absl::Status KeepPrivate(const std::string& path) {
  if (path == ":memory:") return absl::OkStatus();
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);  // otherwise SQLite says why
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    TERSE_RETURN_IF_ERROR(MakePrivate(absl::StrCat(path, beside)));
  }
  return absl::OkStatus();
}

// A null pointer would bind NULL.
const char* DataOf(absl::string_view value) { return value.data() == nullptr ? "" : value.data(); }

class SqliteCursor final : public Statement::Cursor {
 public:
  SqliteCursor(SqliteDb* db, sqlite3_stmt* stmt) : db_(db), stmt_(stmt) {}
  ~SqliteCursor() override {
    sqlite3_reset(stmt_);
    sqlite3_clear_bindings(stmt_);
  }

  absl::Status BindInt(int parameter, int64_t value) override {
    return Check(sqlite3_bind_int64(stmt_, parameter, value));
  }
  absl::Status BindNull(int parameter) override { return Check(sqlite3_bind_null(stmt_, parameter)); }
  absl::Status BindReal(int parameter, double value) override {
    return Check(sqlite3_bind_double(stmt_, parameter, value));
  }
  absl::Status BindText(int parameter, absl::string_view value) override {
    return Check(sqlite3_bind_text64(stmt_, parameter, DataOf(value), value.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  absl::Status BindBlob(int parameter, absl::string_view value) override {
    return Check(sqlite3_bind_blob64(stmt_, parameter, DataOf(value), value.size(), SQLITE_STATIC));
  }
  absl::Status BindId(int parameter, const Id128& value) override {
    const std::string bytes = value.ToBytes();
    return Check(sqlite3_bind_blob64(stmt_, parameter, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  }

  absl::StatusOr<bool> Step() override {
    const int result = sqlite3_step(stmt_);
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    return db_->Error(result);
  }
  absl::Status Run() override {
    TERSE_ASSIGN_OR_RETURN(const bool row, Step());
    if (row) return absl::InternalError(absl::StrCat("unexpected row from: ", sqlite3_sql(stmt_)));
    return absl::OkStatus();
  }

  int64_t GetInt(int column) const override { return sqlite3_column_int64(stmt_, column); }
  double GetReal(int column) const override {
    if (IsNull(column)) return std::numeric_limits<double>::quiet_NaN();
    return sqlite3_column_double(stmt_, column);
  }
  bool IsNull(int column) const override { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }
  absl::string_view GetText(int column) const override { return View(sqlite3_column_text(stmt_, column), column); }
  absl::string_view GetBlob(int column) const override { return View(sqlite3_column_blob(stmt_, column), column); }

 private:
  absl::Status Check(int result) const { return result == SQLITE_OK ? absl::OkStatus() : db_->Error(result); }
  absl::string_view View(const void* data, int column) const {
    const size_t size = data == nullptr ? 0 : static_cast<size_t>(sqlite3_column_bytes(stmt_, column));
    return absl::string_view(static_cast<const char*>(data), size);
  }

  SqliteDb* const db_;
  sqlite3_stmt* const stmt_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteDb>> SqliteDb::Open(const std::string& path, Mode mode, const std::string& vfs) {
  if (mode == Mode::kWriter && vfs.empty()) TERSE_RETURN_IF_ERROR(KeepPrivate(path));
  sqlite3* raw = nullptr;
  const std::string name = mode == Mode::kObserver ? ObserverUri(path) : path;
  const int result = sqlite3_open_v2(name.c_str(), &raw, FlagsOf(mode), vfs.empty() ? nullptr : vfs.c_str());
  if (raw == nullptr) return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to open the database"));
  std::unique_ptr<SqliteDb> db(new SqliteDb(path, raw));
  if (result != SQLITE_OK) return db->Error(result);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  sqlite3_wal_hook(raw, OnCommitted, nullptr);
  const int function_flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  const int added = sqlite3_create_function_v2(raw, "terse_checksum", -1, function_flags, nullptr, Checksum, nullptr,
                                               nullptr, nullptr);
  if (added != SQLITE_OK) return db->Error(added);
  // secure_delete (on in some builds) would overwrite pruned messages with zeros for nothing.
  TERSE_RETURN_IF_ERROR(
      db->Script("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                 "PRAGMA foreign_keys=ON; PRAGMA secure_delete=OFF;"));
  if (Mutated(Mutant::kSyncNormal)) TERSE_RETURN_IF_ERROR(db->Script("PRAGMA synchronous=NORMAL"));
  // A round of 10,000 clients changes some 20 MB of pages. What does not fit is written twice.
  if (mode == Mode::kWriter) TERSE_RETURN_IF_ERROR(db->Script("PRAGMA cache_size=-32768;"));
  if (mode != Mode::kWriter) TERSE_RETURN_IF_ERROR(db->Script("PRAGMA query_only=ON;"));
  return db;
}

SqliteDb::~SqliteDb() {
  for (const auto& [sql, stmt] : statements_) sqlite3_finalize(stmt);
  sqlite3_close(db_);
}

Statement SqliteDb::Prepare(absl::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* stmt = nullptr;
    const int result =
        sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
    if (result != SQLITE_OK) return Statement(this, Error(result));
    found = statements_.emplace(std::string(sql), stmt).first;
  }
  return Statement(this, std::make_unique<SqliteCursor>(this, found->second));
}

absl::Status SqliteDb::Script(const std::string& sql) {
  const int result = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : Error(result);
}

absl::Status SqliteDb::Begin() {
  TERSE_RETURN_IF_ERROR(broken_);
  return Prepare("BEGIN IMMEDIATE").Run();
}

absl::Status SqliteDb::End(absl::Status status) {
  if (status.ok()) status = Commit();
  if (IsSyncFailure(status)) Break(status);
  // SQLite has already rolled back after some errors; a second ROLLBACK would then fail.
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0) Prepare("ROLLBACK").Run().IgnoreError();
  return status;
}

absl::Status SqliteDb::Commit() {
  if (Prepare("COMMIT").Run().ok()) return absl::OkStatus();
  // An error of OnCommitted shows only now that the statement was reset.
  const int result = sqlite3_extended_errcode(db_);
  const absl::Status status = Error(result);
  if (OutcomeIsKnown(result)) return status;
  return absl::UnknownError(absl::StrCat(status.message(), "; a restart finds the transaction or does not"));
}

void SqliteDb::Break(const absl::Status& sync_failure) {
  if (broken_.ok())
    broken_ = Annotate(sync_failure, "nothing is written after a failed flush; restart the coordinator");
}

absl::Status SqliteDb::FlushLog() {
  const int result = sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  return result == SQLITE_OK ? absl::OkStatus() : Error(result);
}

absl::Status SqliteDb::PinSnapshot() {
  TERSE_RETURN_IF_ERROR(Script("BEGIN"));
  return Script("SELECT 1 FROM sqlite_schema LIMIT 1");  // a transaction begins to see with its first read
}

absl::Status SqliteDb::CopyFrom(SqliteDb& source) {
  sqlite3_backup* backup = sqlite3_backup_init(db_, "main", source.db_, "main");
  if (backup == nullptr) return Error(sqlite3_extended_errcode(db_));
  const int copied = sqlite3_backup_step(backup, -1);
  const int result = sqlite3_backup_finish(backup);  // forgets that a step was refused by a lock
  if (result == SQLITE_OK && copied == SQLITE_DONE) return absl::OkStatus();
  return Error(result != SQLITE_OK ? result : copied);
}

absl::StatusOr<int64_t> SqliteDb::Changes() { return sqlite3_changes(db_); }

absl::Status SqliteDb::BeginReading() { return Prepare("BEGIN").Run(); }
absl::Status SqliteDb::EndReading() { return Prepare("ROLLBACK").Run(); }

absl::Status SqliteDb::Error(int result) {
  const absl::StatusCode code = CodeOf(result);
  return absl::Status(code, absl::StrCat(path_, ": ", sqlite3_errmsg(db_), RemedyFor(code)));
}

}  // namespace terse
