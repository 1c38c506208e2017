// One connection to a database, whatever its engine: prepared statements that are kept, transactions, and absl::Status.
// SQLite (storage/sqlite_db.h) and PostgreSQL (storage/postgres_db.h) implement it. Internal to storage/.
//
// Statements are written in the SQL that both engines have, with SQLite's parameters: `?` is the next one, `?1` the
// first. Where the engines differ, a SqlText has both forms.
#ifndef TERSE_STORAGE_SQL_DB_H_
#define TERSE_STORAGE_SQL_DB_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/id128.h"

namespace terse {

enum class SqlEngine { kSqlite, kPostgres };

// A statement, or a piece of one, for each engine.
class SqlText {
 public:
  // The same for both.
  SqlText(const char* text) : sqlite_(text), postgres_(text) {}         // NOLINT(google-explicit-constructor)
  SqlText(absl::string_view text) : sqlite_(text), postgres_(text) {}   // NOLINT(google-explicit-constructor)
  SqlText(const std::string& text) : sqlite_(text), postgres_(text) {}  // NOLINT(google-explicit-constructor)
  SqlText(std::string sqlite, std::string postgres) : sqlite_(std::move(sqlite)), postgres_(std::move(postgres)) {}

  const std::string& For(SqlEngine engine) const { return engine == SqlEngine::kSqlite ? sqlite_ : postgres_; }

 private:
  std::string sqlite_, postgres_;
};

// The pieces, one behind the other.
SqlText SqlCat(std::initializer_list<SqlText> pieces);

class SqlDb;

// A prepared statement, borrowed from its connection until destruction. Parameters are bound in order. An error is kept
// and comes out of Step or Run, so calls chain: db.Prepare("UPDATE ... ?").Int(7).Id(id).Run().
class Statement {
 public:
  // What an engine does for a statement. Values that are bound live until the cursor is destroyed, but for Id's.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    virtual absl::Status BindInt(int parameter, int64_t value) = 0;  // parameters count from 1
    virtual absl::Status BindNull(int parameter) = 0;
    virtual absl::Status BindReal(int parameter, double value) = 0;
    virtual absl::Status BindText(int parameter, absl::string_view value) = 0;
    virtual absl::Status BindBlob(int parameter, absl::string_view value) = 0;
    virtual absl::Status BindId(int parameter, const Id128& value) = 0;
    virtual absl::StatusOr<bool> Step() = 0;
    virtual absl::Status Run() = 0;
    virtual int64_t GetInt(int column) const = 0;
    virtual double GetReal(int column) const = 0;
    virtual bool IsNull(int column) const = 0;
    virtual absl::string_view GetText(int column) const = 0;
    virtual absl::string_view GetBlob(int column) const = 0;
  };

  Statement(SqlDb* db, absl::StatusOr<std::unique_ptr<Cursor>> cursor);

  Statement& Int(int64_t value);
  Statement& Null();
  // A value that is no number is stored as NULL.
  Statement& Real(double value);
  // The bytes must live until the statement is destroyed.
  Statement& Text(absl::string_view value);
  Statement& Blob(absl::string_view value);
  Statement& Id(const Id128& value);

  // The first error of the calls above.
  const absl::Status& status() const { return status_; }
  // True: there is a row, read with the Get functions. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement that returns no rows. On PostgreSQL an error may come only from a later call on the connection: at
  // the latest from Changes, from a statement with rows, and from SqlDb::End.
  absl::Status Run();
  // Acts as Run, and returns FAILED_PRECONDITION with `otherwise` unless exactly one row changed.
  absl::Status RunForOne(absl::string_view otherwise);

  // Columns of the current row, from 0. The views live until the next Step.
  int64_t GetInt(int column) const { return cursor_->GetInt(column); }
  double GetReal(int column) const { return cursor_->GetReal(column); }  // NULL gives NaN
  bool IsNull(int column) const { return cursor_->IsNull(column); }
  absl::string_view GetText(int column) const { return cursor_->GetText(column); }
  absl::string_view GetBlob(int column) const { return cursor_->GetBlob(column); }
  Id128 GetId(int column) const;  // the schema guarantees 16 bytes; anything else gives the zero id

 private:
  template <typename Bind>
  Statement& BindNext(Bind bind);

  SqlDb* const db_;
  std::unique_ptr<Cursor> cursor_;
  absl::Status status_;
  int bound_ = 0;
};

// Not thread-safe. Statements must not outlive it, and the same SQL must not be prepared twice at a time.
class SqlDb {
 public:
  virtual ~SqlDb() = default;
  SqlDb() = default;
  SqlDb(const SqlDb&) = delete;
  SqlDb& operator=(const SqlDb&) = delete;

  virtual SqlEngine engine() const = 0;
  // Where the data are, for people: a file's path, or a server's address, database and schema.
  virtual const std::string& place() const = 0;
  // The advice at the end of an error about damaged data, with the "; " that leads to it.
  virtual absl::string_view remedy() const = 0;

  // The statement is prepared at the first call and kept.
  virtual Statement Prepare(absl::string_view sql) = 0;
  Statement Prepare(const SqlText& sql) { return Prepare(absl::string_view(sql.For(engine()))); }
  Statement Prepare(const char* sql) { return Prepare(absl::string_view(sql)); }
  Statement Prepare(const std::string& sql) { return Prepare(absl::string_view(sql)); }
  // Runs statements that need neither parameters nor speed.
  virtual absl::Status Script(const std::string& sql) = 0;

  // Begins a transaction that writes.
  virtual absl::Status Begin() = 0;
  // Commits when `status` is OK; otherwise, and when that fails, everything since Begin is rolled back, and the error
  // returned.
  virtual absl::Status End(absl::Status status) = 0;
  // Begin, `body`, End.
  absl::Status InTransaction(absl::FunctionRef<absl::Status()> body);
  // Between the two, reads see the data as they were at the first read.
  virtual absl::Status BeginReading() = 0;
  virtual absl::Status EndReading() = 0;
  // Refuses every further transaction with this status: what is stored is no longer known.
  virtual void Break(const absl::Status& status) = 0;

  // Binds the values of one row.
  using FillRow = absl::FunctionRef<void(int64_t row, Statement& values)>;
  // Inserts so many rows. `columns` are names with commas between them. Within a transaction.
  virtual absl::Status InsertRows(absl::string_view table, absl::string_view columns, int64_t rows, FillRow fill);

  // Rows that the last INSERT, UPDATE or DELETE changed.
  virtual absl::StatusOr<int64_t> Changes() = 0;
};

}  // namespace terse

#endif  // TERSE_STORAGE_SQL_DB_H_
