#include "storage/postgres_db.h"

#include <arpa/inet.h>
#include <endian.h>
#include <libpq-fe.h>
#include <utf8.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "core/status.h"

namespace terse {
namespace {

// Object ids of types, which PostgreSQL never changes (its catalogue pg_type).
constexpr Oid kBool = 16, kBytes = 17, kInt64 = 20, kInt16 = 21, kInt32 = 23, kText = 25, kFloat64 = 701;
// So many statements are sent before their answers are read. The answers to so many are small enough for the buffers
// between the two, so neither side waits for the other to read.
constexpr size_t kMostPending = 256;

// COPY's binary format begins with a signature, no flags and no extension.
constexpr char kCopySignature[] = "PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
// Rows of a COPY are sent in pieces of about so many bytes.
constexpr size_t kCopiedBytes = 256 << 10;

// A class or a code of SQLSTATE, and what it means here. The first that fits counts.
struct Meaning {
  absl::string_view sqlstate;
  absl::StatusCode code;
};
constexpr Meaning kMeanings[] = {{"42501", absl::StatusCode::kPermissionDenied},  // insufficient privilege
                                 {"25006", absl::StatusCode::kUnavailable},       // the server is a standby
                                 {"25P03", absl::StatusCode::kUnavailable},       // idle in transaction for too long
                                 {"55P03", absl::StatusCode::kUnavailable},       // a lock was not to be had
                                 {"08", absl::StatusCode::kUnavailable},          // connection
                                 {"40", absl::StatusCode::kUnavailable},          // the transaction was rolled back
                                 {"57", absl::StatusCode::kUnavailable},          // an operator intervened
                                 {"58", absl::StatusCode::kUnavailable},          // the server's system failed
                                 {"53", absl::StatusCode::kResourceExhausted},    // disk, memory, connections
                                 {"54", absl::StatusCode::kUnimplemented},        // a limit of PostgreSQL
                                 {"28", absl::StatusCode::kPermissionDenied},     // authentication
                                 {"23", absl::StatusCode::kFailedPrecondition},   // a constraint
                                 {"XX001", absl::StatusCode::kDataLoss},
                                 {"XX002", absl::StatusCode::kDataLoss}};

absl::StatusCode CodeOf(absl::string_view sqlstate) {
  for (const Meaning& meaning : kMeanings) {
    if (absl::StartsWith(sqlstate, meaning.sqlstate)) return meaning.code;
  }
  return absl::StatusCode::kInternal;
}

absl::string_view RemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "; give the server more room, memory or connections";
    case absl::StatusCode::kUnavailable:
      return "; check that the server runs and can be reached";
    case absl::StatusCode::kDataLoss:
      return kPostgresRemedy;
    case absl::StatusCode::kPermissionDenied:
      return "; check the user, its password file and its rights in the database";
    default:
      return "";
  }
}

// A message of libpq without its line ends, behind which it indents its hints with a tab.
std::string OneLine(absl::string_view message) {
  return absl::StrReplaceAll(absl::StripSuffix(message, "\n"), {{"\n\t", "; "}, {"\n", "; "}, {"\t", " "}});
}

// An integer as the server sends it, which is big-endian.
template <typename T>
T LoadBytes(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

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

// PostgreSQL's text is UTF-8 without zero bytes. What is not becomes U+FFFD.
std::string ValidText(absl::string_view text) {
  std::string valid;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(valid));
  return absl::StrReplaceAll(valid, {{absl::string_view("\0", 1), "\xef\xbf\xbd"}});
}

bool IsValidText(absl::string_view text) {
  return text.find('\0') == absl::string_view::npos && utf8::is_valid(text.begin(), text.end());
}

// A value's length is an int in the protocol.
absl::Status CheckValueBytes(size_t bytes) {
  if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max())) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("a value of ", bytes, " bytes is larger than PostgreSQL takes"));
}

// Whether what is sent to a host stays on this machine. Without a host, and with a path, it goes through a socket of
// the file system.
bool IsThisMachine(const std::string& host) {
  if (host.empty() || host[0] == '/' || host[0] == '@' || host == "localhost") return true;
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr ipv6{};
  return inet_pton(AF_INET6, host.c_str(), &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
}

// The options of an address or of a connection.
class Options {
 public:
  explicit Options(PQconninfoOption* options) : options_(options) {}
  ~Options() { PQconninfoFree(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  absl::optional<std::string> Get(absl::string_view keyword) const {
    for (const PQconninfoOption* option = options_; option != nullptr && option->keyword != nullptr; ++option) {
      if (keyword == option->keyword && option->val != nullptr) return std::string(option->val);
    }
    return absl::nullopt;
  }

 private:
  PQconninfoOption* const options_;
};

// The sslmode that checks a server's certificate and its name.
constexpr char kCheckedTls[] = "verify-full";
constexpr char kTlsRemedy[] =
    "; name sslmode=verify-full in the address, and sslrootcert=FILE with the authority that signed the server's "
    "certificate";

// Whether the text of an address that cannot be read may have a password in it, which libpq's messages would repeat.
bool MayHavePassword(absl::string_view address) {
  const size_t begin = address.find("://");
  const size_t end = address.rfind('@');
  return absl::StrContains(absl::AsciiStrToLower(address), "password") ||
         (begin < end && end != absl::string_view::npos &&
          absl::StrContains(address.substr(begin + 3, end - begin - 3), ':'));
}

// Whether every host that the address names is this machine.
bool IsLocal(const Options& address) {
  for (const char* const keyword : {"host", "hostaddr"}) {
    const std::vector<std::string> hosts = absl::StrSplit(address.Get(keyword).value_or(""), ',');
    if (!std::all_of(hosts.begin(), hosts.end(), IsThisMachine)) return false;
  }
  return true;
}

// The sslmode that an address is to be used with; nullopt: its own.
absl::StatusOr<absl::optional<std::string>> SslModeFor(const std::string& address) {
  char* why = nullptr;
  const Options options(PQconninfoParse(address.c_str(), &why));
  if (why != nullptr) {
    const std::string shown = MayHavePassword(address) ? "" : absl::StrCat(": ", OneLine(why));
    PQfreemem(why);
    return absl::InvalidArgumentError(
        absl::StrCat("the address of the store cannot be read", shown, "; it is like postgresql://USER@HOST/DATABASE"));
  }
  if (options.Get("password").has_value() || options.Get("sslpassword").has_value()) {
    return absl::InvalidArgumentError(
        "the address of the store has a password, which every user of this machine can read there; put it into "
        "~/.pgpass, or into a service file and name service=NAME");
  }
  if (IsLocal(options)) return absl::optional<std::string>();
  const std::string sslmode = options.Get("sslmode").value_or(kCheckedTls);
  if (sslmode == kCheckedTls) return absl::make_optional(sslmode);
  return absl::InvalidArgumentError(absl::StrCat("the address of the store names another machine and sslmode=", sslmode,
                                                 ", which does not check its certificate", kTlsRemedy));
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
      TERSE_RETURN_IF_ERROR(CheckTypes());
    }
    return ++row_ < PQntuples(result_.get());
  }
  absl::Status Run() override {
    TERSE_RETURN_IF_ERROR(db_->Send(sql_, parameters_));
    return db_->in_transaction_ ? absl::OkStatus() : db_->Answer();
  }

  int64_t GetInt(int column) const override {
    if (IsNull(column)) return 0;
    const char* const value = PQgetvalue(result_.get(), row_, column);
    switch (PQftype(result_.get(), column)) {
      case kBool:
        return value[0] != 0 ? 1 : 0;
      case kInt16:
        return static_cast<int16_t>(be16toh(LoadBytes<uint16_t>(value)));
      case kInt32:
        return static_cast<int32_t>(be32toh(LoadBytes<uint32_t>(value)));
      case kInt64:
        return static_cast<int64_t>(be64toh(LoadBytes<uint64_t>(value)));
      default:
        return 0;  // as SQLite says for a text that is no number
    }
  }
  double GetReal(int column) const override {
    if (IsNull(column)) return std::numeric_limits<double>::quiet_NaN();
    if (PQftype(result_.get(), column) != kFloat64) return static_cast<double>(GetInt(column));
    const uint64_t bits = be64toh(LoadBytes<uint64_t>(PQgetvalue(result_.get(), row_, column)));
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
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
  absl::Status CheckTypes() const {
    for (int column = 0; column < PQnfields(result_.get()); ++column) {
      switch (const Oid type = PQftype(result_.get(), column)) {
        case kBool:
        case kBytes:
        case kInt16:
        case kInt32:
        case kInt64:
        case kText:
        case kFloat64:
          break;
        default:
          return absl::InternalError(
              absl::StrCat("column ", column, " has a type (", type, ") that nobody reads, in the rows of: ", sql_));
      }
    }
    return absl::OkStatus();
  }

  PostgresDb* const db_;
  const std::string sql_;
  std::vector<Parameter> parameters_;
  std::deque<std::string> owned_;  // never moves what it has
  Result result_;
  int row_ = -1;
};

// A row of COPY's binary format: the number of its values, and each behind its length.
class PostgresDb::CopiedRow final : public Statement::Cursor {
 public:
  explicit CopiedRow(std::string* out) : out_(out) {}

  absl::Status BindInt(int, int64_t value) override { return PutBits(static_cast<uint64_t>(value)); }
  absl::Status BindNull(int) override {
    PutBigEndian(htobe32(static_cast<uint32_t>(-1)));
    return absl::OkStatus();
  }
  absl::Status BindReal(int, double value) override {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return PutBits(bits);
  }
  absl::Status BindText(int, absl::string_view value) override {
    return IsValidText(value) ? PutBytes(value) : PutBytes(ValidText(value));
  }
  absl::Status BindBlob(int, absl::string_view value) override { return PutBytes(value); }
  absl::Status BindId(int, const Id128& value) override { return PutBytes(value.ToBytes()); }

  absl::StatusOr<bool> Step() override { return absl::InternalError("a row that is inserted has no rows"); }
  absl::Status Run() override { return Step().status(); }
  int64_t GetInt(int) const override { return 0; }
  double GetReal(int) const override { return 0; }
  bool IsNull(int) const override { return true; }
  absl::string_view GetText(int) const override { return {}; }
  absl::string_view GetBlob(int) const override { return {}; }

 private:
  template <typename T>
  void PutBigEndian(T swapped) {
    out_->append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
  }
  absl::Status PutBits(uint64_t bits) {
    PutBigEndian(htobe32(sizeof bits));
    PutBigEndian(htobe64(bits));
    return absl::OkStatus();
  }
  absl::Status PutBytes(absl::string_view bytes) {
    TERSE_RETURN_IF_ERROR(CheckValueBytes(bytes.size()));
    PutBigEndian(htobe32(static_cast<uint32_t>(bytes.size())));
    out_->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  std::string* const out_;
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
                                           RemedyFor(code)));
  }
  absl::Status begun = BeginSession();
  // A reader that is refused tries again with a new connection.
  if (!begun.ok()) Break(begun);
  return begun;
}

absl::Status PostgresDb::BeginSession() {
  const Options options(PQconninfo(connection_));
  const absl::string_view host = PQhost(connection_) == nullptr ? "" : PQhost(connection_);
  server_ = absl::StrCat("the database ", PQdb(connection_), " at ", host, ":", PQport(connection_));
  place_ = absl::StrCat(server_, ", schema ", schema_);
  // A service file may have named the host, and a name may mean any address.
  const bool is_checked = PQsslInUse(connection_) == 1 && options.Get("sslmode") == kCheckedTls;
  if (!IsThisMachine(PQhostaddr(connection_)) && !is_checked) {
    return absl::InvalidArgumentError(
        absl::StrCat(place_, " is on another machine, and its certificate is not checked", kTlsRemedy));
  }
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
  const absl::StatusCode code = sqlstate == nullptr ? absl::StatusCode::kUnavailable : CodeOf(sqlstate);
  return absl::Status(code, absl::StrCat(place_, ": ", OneLine(PQresultErrorMessage(result)), RemedyFor(code)));
}

absl::Status PostgresDb::Lost() {
  if (broken_.ok()) {
    const std::string why = failed_.ok() ? OneLine(PQerrorMessage(connection_)) : std::string(failed_.message());
    broken_ = absl::UnavailableError(
        absl::StrCat(place_, ": the connection is lost: ", why, RemedyFor(absl::StatusCode::kUnavailable)));
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
  std::string out(kCopySignature, sizeof kCopySignature - 1);
  const uint16_t count = htobe16(values);
  for (int64_t row = 0; row < rows; ++row) {
    out.append(reinterpret_cast<const char*>(&count), sizeof count);
    Statement statement(this, std::make_unique<CopiedRow>(&out));
    fill(row, statement);
    TERSE_RETURN_IF_ERROR(statement.status());
    if (out.size() < kCopiedBytes) continue;
    if (PQputCopyData(connection_, out.data(), static_cast<int>(out.size())) != 1) return Lost();
    out.clear();
  }
  out.append("\xff\xff", 2);  // no further row
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
