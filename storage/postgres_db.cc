#include "storage/postgres_db.h"

#include <endian.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "storage/postgres_address.h"
#include "storage/postgres_errors.h"
#include "storage/postgres_values.h"

namespace terse {
namespace {

// So many statements are sent before their answers are read. The answers to so many are small enough for the buffers
// between the two, so neither side waits for the other to read.
constexpr size_t kMostPending = 256;

// Rows of a COPY are sent in pieces of about so many bytes.
constexpr size_t kCopiedBytes = 256 << 10;

// SQLite's parameters, as PostgreSQL writes them: `?` is the next one and `?1` the first.
std::string WithDollars(absl::string_view sql) {
  std::string out;
  int next = 1;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] != '?') {
      out.push_back(sql[i]);
      continue;
    }
    out.push_back('$');
    const bool is_numbered = i + 1 < sql.size() && sql[i + 1] >= '1' && sql[i + 1] <= '9';
    if (!is_numbered) absl::StrAppend(&out, next++);
  }
  return out;
}

}  // namespace

// Parameters live in the cursor, the values of Text and Blob where the caller has them.
class PostgresDb::Cursor final : public Statement::Cursor {
 public:
  Cursor(PostgresDb* db, absl::string_view sql) : db_(db), sql_(sql), result_(nullptr, PQclear) {}

  absl::Status BindInt(int parameter, int64_t value) override { return BindBits(kInt64, static_cast<uint64_t>(value)); }
  absl::Status BindNull(int parameter) override {
    parameters_.push_back({});
    return absl::OkStatus();
  }
  absl::Status BindReal(int parameter, double value) override {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return BindBits(kFloat64, bits);
  }
  absl::Status BindText(int parameter, absl::string_view value) override {
    if (IsValidText(value)) return BindView(kText, value);
    owned_.push_back(ValidText(value));
    return BindView(kText, owned_.back());
  }
  absl::Status BindBlob(int parameter, absl::string_view value) override { return BindView(kBytes, value); }
  absl::Status BindId(int parameter, const Id128& value) override {
    owned_.push_back(value.ToBytes());
    return BindView(kBytes, owned_.back());
  }

  absl::StatusOr<bool> Step() override {
    if (result_ == nullptr) {
      TERSE_RETURN_IF_ERROR(db_->Send(sql_, parameters_));
      TERSE_RETURN_IF_ERROR(db_->Answer());
      result_ = std::move(db_->result_);
      TERSE_RETURN_IF_ERROR(Annotate(CheckTypes(result_.get()), absl::StrCat("the rows of: ", sql_)));
    }
    return ++row_ < PQntuples(result_.get());
  }
  absl::Status Run() override {
    TERSE_RETURN_IF_ERROR(db_->Send(sql_, parameters_));
    return db_->in_transaction_ ? absl::OkStatus() : db_->Answer();
  }

  int64_t GetInt(int column) const override { return IsNull(column) ? 0 : IntAt(result_.get(), row_, column); }
  double GetReal(int column) const override {
    return IsNull(column) ? std::numeric_limits<double>::quiet_NaN() : RealAt(result_.get(), row_, column);
  }
  bool IsNull(int column) const override { return PQgetisnull(result_.get(), row_, column) != 0; }
  absl::string_view GetText(int column) const override { return GetBlob(column); }
  absl::string_view GetBlob(int column) const override {
    return absl::string_view(PQgetvalue(result_.get(), row_, column),
                             static_cast<size_t>(PQgetlength(result_.get(), row_, column)));
  }

 private:
  absl::Status BindBits(Oid type, uint64_t bits) {
    bits = htobe64(bits);
    owned_.emplace_back(reinterpret_cast<const char*>(&bits), sizeof bits);
    return BindView(type, owned_.back());
  }
  absl::Status BindView(Oid type, absl::string_view bytes) {
    TERSE_RETURN_IF_ERROR(CheckValueBytes(bytes.size()));
    // A null pointer would bind NULL.
    parameters_.push_back({type, bytes.data() == nullptr ? "" : bytes.data(), static_cast<int>(bytes.size())});
    return absl::OkStatus();
  }
  PostgresDb* const db_;
  const std::string sql_;
  std::vector<Parameter> parameters_;
  std::deque<std::string> owned_;  // never moves what it has
  Result result_;
  int row_ = -1;
};

PostgresDb::PostgresDb(std::string address, std::string schema, Mode mode)
    : address_(std::move(address)), schema_(std::move(schema)), mode_(mode), result_(nullptr, PQclear) {}

PostgresDb::~PostgresDb() { PQfinish(connection_); }

absl::StatusOr<std::unique_ptr<PostgresDb>> PostgresDb::Open(const std::string& address, const std::string& schema,
                                                             Mode mode) {
  std::unique_ptr<PostgresDb> db(new PostgresDb(address, schema, mode));
  TERSE_RETURN_IF_ERROR(db->Connect());
  return db;
}

std::string PostgresDb::Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

absl::Status PostgresDb::Connect() {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> sslmode, SslModeFor(address_));
  PQfinish(connection_);
  statements_.clear();
  pending_.clear();
  // The keywords before the address are defaults, and those behind it override it.
  std::vector<const char*> keywords = {"connect_timeout",  "tcp_user_timeout", "dbname",
                                       "application_name", "client_encoding",  "target_session_attrs"};
  std::vector<const char*> values = {
      "5", "5000", address_.c_str(), mode_ == Mode::kLease ? "terse lease" : kStoreApplication, "UTF8", "read-write"};
  if (sslmode.has_value()) {
    keywords.push_back("sslmode");
    values.push_back(sslmode->c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  connection_ = PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/1);
  if (connection_ == nullptr) return absl::ResourceExhaustedError("no memory to connect to the store's server");
  if (PQstatus(connection_) != CONNECTION_OK) {
    // libpq tells no code here, except when the server asked for a password that nobody has.
    const absl::StatusCode code = PQconnectionNeedsPassword(connection_) == 1 ? absl::StatusCode::kPermissionDenied
                                                                              : absl::StatusCode::kUnavailable;
    return absl::Status(code, absl::StrCat("the store's server cannot be used: ", OneLine(PQerrorMessage(connection_)),
                                           PostgresRemedyFor(code)));
  }
  absl::Status begun = BeginSession();
  // A reader that is refused tries again with a new connection.
  if (!begun.ok()) Break(begun);
  return begun;
}

absl::Status PostgresDb::BeginSession() {
  const absl::string_view host = PQhost(connection_) == nullptr ? "" : PQhost(connection_);
  server_ = absl::StrCat("the database ", PQdb(connection_), " at ", host, ":", PQport(connection_));
  place_ = absl::StrCat(server_, ", schema ", schema_);
  TERSE_RETURN_IF_ERROR(CheckProtection(connection_, place_));
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  if (PQenterPipelineMode(connection_) == 0) return Lost();
  broken_ = absl::OkStatus();
  failed_ = absl::OkStatus();
  in_transaction_ = false;
  return Script(absl::StrCat("SET search_path TO ", Quoted(schema_),
                             mode_ == Mode::kReader ? "; SET default_transaction_read_only TO on" : ""));
}

Statement PostgresDb::Prepare(absl::string_view sql) { return Statement(this, std::make_unique<Cursor>(this, sql)); }

absl::Status PostgresDb::Send(const std::string& sql, absl::Span<const Parameter> parameters) {
  TERSE_RETURN_IF_ERROR(broken_);
  TERSE_RETURN_IF_ERROR(failed_);
  if (pending_.size() >= kMostPending) TERSE_RETURN_IF_ERROR(Drain());
  std::vector<Oid> types;
  std::string key = absl::StrCat(sql, "\n");
  for (const Parameter& parameter : parameters) {
    types.push_back(parameter.type);
    absl::StrAppend(&key, parameter.type, " ");
  }
  Prepared& prepared = statements_[key];
  if (!prepared.sent) {
    prepared.name = absl::StrCat("s", ++named_);
    prepared.sent = true;
    if (PQsendPrepare(connection_, prepared.name.c_str(), WithDollars(sql).c_str(), static_cast<int>(types.size()),
                      types.data()) == 0) {
      return Lost();
    }
    pending_.push_back({Pending::Kind::kPrepare, &prepared});
  }
  return SendPrepared(prepared, parameters);
}

absl::Status PostgresDb::SendPrepared(const Prepared& prepared, absl::Span<const Parameter> parameters) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  const std::vector<int> formats(parameters.size(), 1);
  for (const Parameter& parameter : parameters) {
    values.push_back(parameter.data);
    lengths.push_back(parameter.size);
  }
  if (PQsendQueryPrepared(connection_, prepared.name.c_str(), static_cast<int>(values.size()), values.data(),
                          lengths.data(), formats.data(), /*resultFormat=*/1) == 0) {
    return Lost();
  }
  pending_.push_back({Pending::Kind::kExecute, nullptr});
  return absl::OkStatus();
}

absl::Status PostgresDb::Drain() {
  TERSE_RETURN_IF_ERROR(broken_);
  if (pending_.empty()) return failed_;
  if (PQpipelineSync(connection_) == 0) return Lost();
  pending_.push_back({Pending::Kind::kSync, nullptr});
  while (!pending_.empty()) {
    const Pending pending = pending_.front();
    pending_.pop_front();
    if (!TakeAnswer(pending)) return Lost();
  }
  return failed_;
}

absl::Status PostgresDb::Answer() {
  absl::Status status = Drain();
  // Without a transaction the error is that of one statement.
  if (!in_transaction_) failed_ = absl::OkStatus();
  return status;
}

bool PostgresDb::TakeAnswer(const Pending& pending) {
  Result answer(PQgetResult(connection_), PQclear);
  if (answer == nullptr || PQstatus(connection_) == CONNECTION_BAD) {
    if (answer != nullptr) Note(answer.get());
    return false;
  }
  const ExecStatusType status = PQresultStatus(answer.get());
  if (pending.kind == Pending::Kind::kSync) return status == PGRES_PIPELINE_SYNC;
  const bool is_ok = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  if (!is_ok && pending.prepared != nullptr) pending.prepared->sent = false;
  Note(answer.get());
  if (is_ok && pending.kind == Pending::Kind::kExecute) {
    changes_ = 0;
    if (!absl::SimpleAtoi(PQcmdTuples(answer.get()), &changes_)) changes_ = 0;
    result_ = std::move(answer);
  }
  // Behind the answer to each statement there is a null.
  return Result(PQgetResult(connection_), PQclear) == nullptr;
}

void PostgresDb::Note(const pg_result* result) {
  if (PQresultStatus(result) == PGRES_FATAL_ERROR && failed_.ok()) failed_ = ErrorOf(result);
}

absl::Status PostgresDb::ErrorOf(const pg_result* result) const {
  const char* const sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  // libpq's own errors have no code: they are of the connection.
  const absl::StatusCode code = sqlstate == nullptr ? absl::StatusCode::kUnavailable : CodeOfSqlstate(sqlstate);
  return absl::Status(code, absl::StrCat(place_, ": ", OneLine(PQresultErrorMessage(result)), PostgresRemedyFor(code)));
}

absl::Status PostgresDb::Lost() {
  if (broken_.ok()) {
    const std::string why = failed_.ok() ? OneLine(PQerrorMessage(connection_)) : std::string(failed_.message());
    broken_ = absl::UnavailableError(
        absl::StrCat(place_, ": the connection is lost: ", why, PostgresRemedyFor(absl::StatusCode::kUnavailable)));
  }
  pending_.clear();
  return broken_;
}

absl::Status PostgresDb::Script(const std::string& sql) {
  return OutsideOfPipeline([&] {
    Note(Result(PQexec(connection_, sql.c_str()), PQclear).get());
    return failed_;
  });
}

absl::Status PostgresDb::OutsideOfPipeline(absl::FunctionRef<absl::Status()> work) {
  TERSE_RETURN_IF_ERROR(Drain());
  if (PQexitPipelineMode(connection_) == 0) return Lost();
  absl::Status result = work();
  if (PQstatus(connection_) == CONNECTION_BAD || PQenterPipelineMode(connection_) == 0) return Lost();
  if (!in_transaction_) failed_ = absl::OkStatus();
  return result;
}

absl::Status PostgresDb::InsertRows(absl::string_view table, absl::string_view columns, int64_t rows, FillRow fill) {
  const std::string copy = absl::StrCat("COPY ", table, " (", columns, ") FROM STDIN (FORMAT binary)");
  const auto values = static_cast<uint16_t>(std::count(columns.begin(), columns.end(), ',') + 1);
  return OutsideOfPipeline([&]() -> absl::Status {
    const Result begun(PQexec(connection_, copy.c_str()), PQclear);
    Note(begun.get());
    if (PQresultStatus(begun.get()) != PGRES_COPY_IN) return failed_;
    const absl::Status sent = SendRows(values, rows, fill);
    if (PQputCopyEnd(connection_, sent.ok() ? nullptr : "a row cannot be sent") != 1) return Lost();
    for (Result ended(PQgetResult(connection_), PQclear); ended != nullptr; ended.reset(PQgetResult(connection_))) {
      Note(ended.get());
    }
    return sent.ok() ? failed_ : sent;
  });
}

absl::Status PostgresDb::SendRows(uint16_t values, int64_t rows, FillRow fill) {
  std::string out;
  BeginCopy(&out);
  for (int64_t row = 0; row < rows; ++row) {
    Statement statement(this, NewCopiedRow(values, &out));
    fill(row, statement);
    TERSE_RETURN_IF_ERROR(statement.status());
    if (out.size() < kCopiedBytes) continue;
    if (PQputCopyData(connection_, out.data(), static_cast<int>(out.size())) != 1) return Lost();
    out.clear();
  }
  EndCopy(&out);
  return PQputCopyData(connection_, out.data(), static_cast<int>(out.size())) == 1 ? absl::OkStatus() : Lost();
}

absl::Status PostgresDb::Begin() {
  TERSE_RETURN_IF_ERROR(broken_);
  failed_ = absl::OkStatus();
  in_transaction_ = true;
  return Send("BEGIN", {});
}

absl::Status PostgresDb::Finish(const char* sql) {
  const absl::Status sent = Send(sql, {});
  return sent.ok() ? Drain() : sent;
}

absl::Status PostgresDb::End(absl::Status status) {
  if (status.ok()) status = Finish("COMMIT");
  if (!status.ok()) {
    Drain().IgnoreError();
    failed_ = absl::OkStatus();
    if (PQtransactionStatus(connection_) != PQTRANS_IDLE) Finish("ROLLBACK").IgnoreError();
  }
  failed_ = absl::OkStatus();
  in_transaction_ = false;
  return status;
}

absl::Status PostgresDb::BeginReading() {
  if (!broken_.ok() || PQstatus(connection_) != CONNECTION_OK) TERSE_RETURN_IF_ERROR(Connect());
  failed_ = absl::OkStatus();
  in_transaction_ = true;
  return Send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {});
}

absl::Status PostgresDb::EndReading() {
  End(absl::CancelledError("the end of reading")).IgnoreError();
  return broken_;
}

void PostgresDb::Break(const absl::Status& status) {
  if (broken_.ok()) broken_ = status;
}

absl::StatusOr<int64_t> PostgresDb::Changes() {
  TERSE_RETURN_IF_ERROR(Answer());
  return changes_;
}

}  // namespace terse
