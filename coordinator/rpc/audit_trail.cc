#include "coordinator/rpc/audit_trail.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/access.h"
#include "core/file_system.h"
#include "core/json_text.h"
#include "core/log/log.h"
#include "core/status.h"
#include "net/peer.h"
#include "proto/grpc_status.h"
#include "proto/proto_text.h"
#include "security/transport.h"

namespace terse {
namespace {

constexpr absl::Duration kLook = absl::Seconds(1);
// Kinds of refused calls at a time: certificates are the authority's to give, so a fleet has few.
constexpr size_t kMaxCallKinds = 2048;
// A handshake fails for whoever reaches the port, from as many addresses as he has: so few a minute leave the log room.
constexpr size_t kMaxHandshakeKinds = 32;
constexpr char kNobody[] = "nobody of this fleet";
constexpr char kHandshake[] = "TLS handshake";

std::string WhoIs(const CertificateFacts& peer) {
  return absl::StrCat(RoleName(peer.identity.role), " ", peer.identity.name);
}

AuditRecord RecordOf(const AuditedCaller& caller) {
  AuditRecord record;
  record.who = caller.who;
  record.certificate = caller.certificate;
  record.address = caller.address;
  return record;
}

std::string ResultOf(const absl::Status& status) {
  return status.ok() ? "ok" : absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

// Returns the method's name. The caller chooses the name of a method that nobody serves, so that is not repeated.
std::string MethodName(absl::string_view method) {
  const absl::Span<const MethodAccess> table = AccessTable();
  const bool is_known =
      std::any_of(table.begin(), table.end(), [&](const MethodAccess& row) { return row.method == method; });
  const std::vector<absl::string_view> parts = absl::StrSplit(method, '/');
  return is_known ? std::string(parts.back()) : "unknown method";
}

// As seldom as it is written down.
void LogRefusal(const AuditRecord& record) {
  const std::string from = record.address.empty() ? "" : absl::StrCat(" from ", record.address);
  const std::string often = record.times == 1 ? "" : absl::StrCat(" ", record.times, " times");
  absl::string_view client = record.who;
  if (!absl::ConsumePrefix(&client, "client ")) client = "";
  Log(LogLevel::kWarn, kTlsLog, {{}, 0, client},
      absl::StrCat("refused ", record.action, " of ", record.who, from, often, ": ", record.result));
}

absl::Status AppendLine(const std::string& path, absl::string_view line) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  const absl::Cleanup close_file = [fd] { close(fd); };
  while (!line.empty()) {
    const ssize_t written = write(fd, line.data(), line.size());
    if (written < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, path);
    line.remove_prefix(static_cast<size_t>(std::max<ssize_t>(0, written)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditTrail>> AuditTrail::Open(Options options) {
  if (!options.file.empty()) {
    // An empty line would be no record; nothing at all makes the file.
    const absl::Status writable = AppendLine(options.file, "");
    if (!writable.ok()) return Annotate(writable, "--audit-file cannot be written");
  }
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<AuditLog> log, AuditLog::Open(options.state_directory));
  TERSE_ASSIGN_OR_RETURN(const std::vector<AuditRecord> interrupted,
                         log->EndInterrupted(options.clock->NowMicros(), "the process ended before"));
  std::unique_ptr<AuditTrail> trail(new AuditTrail(std::move(options), std::move(log)));
  for (const AuditRecord& record : interrupted) TERSE_RETURN_IF_ERROR(trail->Append(record));
  return trail;
}

AuditTrail::AuditTrail(Options options, std::unique_ptr<AuditLog> log)
    : options_(std::move(options)),
      log_(std::move(log)),
      calls_(kMaxCallKinds),
      handshakes_(kMaxHandshakeKinds),
      thread_([this] { WriteRefusalsUntilClosed(); }) {}

AuditTrail::~AuditTrail() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
  WriteRefusals(/*all=*/true);
}

grpc::Status AuditTrail::Carry(const AuditedCaller& caller, const AuditedAction& action,
                               absl::FunctionRef<grpc::Status()> act) {
  AuditRecord record = RecordOf(caller);
  record.time_us = options_.clock->NowMicros();
  record.action = action.method;
  record.run = action.run;
  record.detail = action.detail;
  const absl::StatusOr<int64_t> id = log_->Begin(record);
  Examine(id.status());
  if (!id.ok()) {
    return ToGrpc(absl::FailedPreconditionError(
        absl::StrCat("nothing was done, because the audit log cannot be written: ", id.status().message())));
  }
  const grpc::Status status = act();
  const absl::StatusOr<AuditRecord> ended = log_->End(*id, options_.clock->NowMicros(), ResultOf(FromGrpc(status)));
  Examine(ended.ok() ? Append(*ended) : ended.status());
  return status;
}

void AuditTrail::Refused(const CertificateFacts* peer, absl::string_view method, const std::string& host,
                         const absl::Status& why) {
  Refused(peer == nullptr ? AuditedCaller{kNobody, "", host} : CallerOf(*peer, host), method, why);
}

void AuditTrail::Refused(const AuditedCaller& caller, absl::string_view method, const absl::Status& why) {
  AuditRecord record = RecordOf(caller);
  record.time_us = record.ended_us = options_.clock->NowMicros();
  record.action = MethodName(method);
  record.result = ResultOf(why);
  const std::string what =
      absl::StrJoin({record.who, record.certificate, record.action, absl::StatusCodeToString(why.code())}, "\n");
  absl::MutexLock lock(&mutex_);
  calls_.Count(what, std::move(record));
}

void AuditTrail::HandshakeFailed(const std::string& host, const std::string& reason) {
  AuditRecord record;
  record.time_us = record.ended_us = options_.clock->NowMicros();
  record.who = kNobody;
  record.action = kHandshake;
  record.address = host;
  record.result = ResultOf(absl::UnauthenticatedError(reason));
  absl::MutexLock lock(&mutex_);
  handshakes_.Count(reason, std::move(record));
}

void AuditTrail::WriteRefusals(bool all) {
  WriteDue(&calls_, all);
  WriteDue(&handshakes_, all);
}

void AuditTrail::WriteDue(CountedRecords* counted, bool all) {
  std::map<CountedRecords::Kind, AuditRecord> due;
  {
    absl::MutexLock lock(&mutex_);
    due = counted->TakeDue(options_.clock->NowMicros(), all);
  }
  for (const auto& [kind, record] : due) {
    LogRefusal(record);
    const absl::StatusOr<AuditRecord> written = log_->Add(record);
    Examine(written.ok() ? Append(*written) : written.status());
    if (written.ok()) continue;
    absl::MutexLock lock(&mutex_);
    counted->PutBack(kind, record);
  }
}

void AuditTrail::WriteRefusalsUntilClosed() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), kLook)) return;
    }
    WriteRefusals(/*all=*/false);
  }
}

void AuditTrail::Examine(const absl::Status& status) {
  if (IsSyncFailure(status)) options_.on_sync_failure(status);
  const std::string trouble(status.message());
  absl::MutexLock lock(&mutex_);
  if (!status.ok() && trouble != trouble_) {
    Log(LogLevel::kError, kServerLog, {}, absl::StrCat("the audit log cannot be written: ", trouble));
  }
  trouble_ = trouble;
}

absl::Status AuditTrail::Append(const AuditRecord& record) const {
  if (options_.file.empty()) return absl::OkStatus();
  v1::AuditRecord message;
  Fill(record, &message);
  return AppendLine(options_.file, absl::StrCat(JsonText(ToJson(message)), "\n"));
}

AuditedCaller CallerOf(const CertificateFacts& peer, const std::string& host) {
  return {WhoIs(peer), peer.serial, host};
}

AuditedCaller CallerOf(const grpc::ServerContextBase& call) {
  const std::string host = HostTextOf(call.peer());
  const absl::StatusOr<absl::optional<CertificateFacts>> peer = PeerCertificate(*call.auth_context());
  if (peer.ok() && peer->has_value()) return CallerOf(**peer, host);
  return {absl::StartsWith(call.peer(), "unix:") ? kSocketCaller : kCleartextCaller, "", host};
}

void Fill(const AuditRecord& record, v1::AuditRecord* out) {
  out->set_id(record.id);
  out->set_time_us(record.time_us);
  out->set_ended_us(record.ended_us);
  out->set_who(record.who);
  out->set_certificate(record.certificate);
  out->set_address(record.address);
  out->set_action(record.action);
  out->set_run(record.run);
  out->set_detail(record.detail);
  out->set_result(record.result);
  out->set_times(record.times);
}

}  // namespace terse
