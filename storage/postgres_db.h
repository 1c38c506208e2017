// SqlDb on one connection to a PostgreSQL server, by libpq. Internal to storage/.
//
// Statements that return no rows are sent without waiting for the ones before them (libpq's pipelines), so a
// transaction of many rows costs few round trips. Parameters and results are binary.
//
// Statuses of every call, with the server's place and message:
//   RESOURCE_EXHAUSTED   the server's disk is full, or it has no memory or no connection left
//   UNIMPLEMENTED        a value is larger than PostgreSQL takes
//   UNAVAILABLE          the server cannot be reached, went away, is a standby, or gave the transaction up. When the
//                        connection is lost no transaction begins any more; a COMMIT that it was lost in may have
//                        happened: whoever opens the database again finds out.
//   DATA_LOSS            the server found its files damaged
//   PERMISSION_DENIED    the user may not connect, or not do this
//   FAILED_PRECONDITION  a constraint of the schema does not hold
//   INVALID_ARGUMENT     the address cannot be read, has a password, or would send data unprotected
//   INTERNAL             anything else: an error in this program
#ifndef TERSE_STORAGE_POSTGRES_DB_H_
#define TERSE_STORAGE_POSTGRES_DB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/postgres_errors.h"
#include "storage/sql_db.h"

struct pg_conn;
struct pg_result;

namespace terse {

// The name of connections to a store in the server's table of sessions; those of a lease have another one.
inline constexpr char kStoreApplication[] = "terse";

class PostgresDb final : public SqlDb {
 public:
  // kLease: as kWriter, for a process that does not serve the store, or not yet (PostgresLease).
  enum class Mode { kWriter, kReader, kLease };

  // Connects. `address` is what libpq takes: a URI (postgresql://user@host:port/database?key=value) or a list of
  // key=value, such as service=NAME. It has no password: libpq finds that in its password file, in a service file or in
  // the environment. A server on another machine is spoken to over TLS only, with its certificate and name checked
  // (sslmode=verify-full). Where the address has several servers, the one that accepts writes is meant, for readers
  // too: a standby may not have yet what was committed just now. Tables are those of `schema`, which need not exist
  // yet.
  static absl::StatusOr<std::unique_ptr<PostgresDb>> Open(const std::string& address, const std::string& schema,
                                                          Mode mode);
  ~PostgresDb() override;

  SqlEngine engine() const override { return SqlEngine::kPostgres; }
  const std::string& place() const override { return place_; }
  absl::string_view remedy() const override { return kPostgresRemedy; }
  using SqlDb::Prepare;
  Statement Prepare(absl::string_view sql) override;
  absl::Status Script(const std::string& sql) override;
  absl::Status Begin() override;
  absl::Status End(absl::Status status) override;
  // A reader that lost its connection makes a new one here.
  absl::Status BeginReading() override;
  absl::Status EndReading() override;
  void Break(const absl::Status& status) override;
  absl::StatusOr<int64_t> Changes() override;
  // By COPY, which is faster than as many statements.
  absl::Status InsertRows(absl::string_view table, absl::string_view columns, int64_t rows, FillRow fill) override;

  const std::string& schema() const { return schema_; }
  // The part of place() that all schemas share.
  const std::string& server() const { return server_; }
  // `name` in the quotes of an identifier.
  static std::string Quoted(absl::string_view name);

 private:
  class Cursor;
  using Result = std::unique_ptr<pg_result, void (*)(pg_result*)>;

  // A parameter in the binary format, as libpq takes it.
  struct Parameter {
    unsigned int type = 0;       // an object id of PostgreSQL's table of types; 0: the server tells
    const char* data = nullptr;  // null for NULL
    int size = 0;
  };
  struct Prepared {
    std::string name;
    bool sent = false;  // and not refused so far
  };
  // The server has yet to answer this.
  struct Pending {
    enum class Kind { kPrepare, kExecute, kSync } kind = Kind::kSync;
    Prepared* prepared = nullptr;
  };

  PostgresDb(std::string address, std::string schema, Mode mode);
  absl::Status Connect();
  // Refuses an unprotected connection, names the place, and sets what every session needs.
  absl::Status BeginSession();
  // Sends one statement behind the others.
  absl::Status Send(const std::string& sql, absl::Span<const Parameter> parameters);
  absl::Status SendPrepared(const Prepared& prepared, absl::Span<const Parameter> parameters);
  // Waits until everything that was sent is answered. Returns the first error since the transaction began.
  absl::Status Drain();
  // Drain; outside of a transaction the next statement begins anew whatever it returns.
  absl::Status Answer();
  // Takes the answer to `pending`. False: the connection is lost.
  bool TakeAnswer(const Pending& pending);
  void Note(const pg_result* result);
  // Sends the rows of a COPY that has begun.
  absl::Status SendRows(uint16_t values, int64_t rows, FillRow fill);
  // Works outside of libpq's pipeline, which allows one statement of certain kinds only.
  absl::Status OutsideOfPipeline(absl::FunctionRef<absl::Status()> work);
  // Sends what ends a transaction, and waits for it.
  absl::Status Finish(const char* sql);
  absl::Status Lost();
  absl::Status ErrorOf(const pg_result* result) const;

  const std::string address_;
  const std::string schema_;
  const Mode mode_;
  std::string server_;
  std::string place_;
  pg_conn* connection_ = nullptr;
  std::map<std::string, Prepared, std::less<>> statements_;  // by the SQL and the types of its parameters
  int64_t named_ = 0;                                        // statements that got a name so far
  std::deque<Pending> pending_;
  Result result_;        // of the newest statement that was answered
  int64_t changes_ = 0;  // rows that the newest statement changed
  bool in_transaction_ = false;
  absl::Status failed_;  // the first error of this transaction
  absl::Status broken_;  // why no transaction begins any more
};

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_DB_H_
