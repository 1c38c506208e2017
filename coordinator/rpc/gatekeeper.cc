#include "coordinator/rpc/gatekeeper.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/access.h"
#include "core/log/log.h"
#include "core/status.h"
#include "net/peer.h"
#include "security/transport.h"

namespace terse {
namespace {

// For the log: empty for those who take no part.
absl::string_view ClientOf(const CertificateFacts& peer) {
  return TakesPart(peer.identity.role) ? absl::string_view(peer.identity.name) : "";
}

bool IsSession(absl::string_view method) { return method == "/terse.v1.Fleet/Session"; }

// Books a call from its first metadata to its end.
class BookedCall : public grpc::experimental::Interceptor {
 public:
  BookedCall(std::shared_ptr<Gatekeeper> gatekeeper, grpc::experimental::ServerRpcInfo* info)
      : gatekeeper_(std::move(gatekeeper)), call_(info->server_context()), method_(info->method()) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Hook::POST_RECV_INITIAL_METADATA)) Book();
    // From here on gRPC may let go of the call.
    if (methods->QueryInterceptionHookPoint(Hook::POST_RECV_CLOSE)) gatekeeper_->Strike(call_);
    methods->Proceed();
  }

 private:
  void Book() {
    const absl::StatusOr<absl::optional<CertificateFacts>> peer = PeerCertificate(*call_->auth_context());
    if (!peer.ok() || !peer->has_value()) return;
    if (!gatekeeper_->Book(call_, method_, **peer).ok()) call_->TryCancel();
  }

  const std::shared_ptr<Gatekeeper> gatekeeper_;
  grpc::ServerContextBase* const call_;
  const char* const method_;  // gRPC's; it outlives the call
};

class CallBook : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallBook(std::shared_ptr<Gatekeeper> gatekeeper) : gatekeeper_(std::move(gatekeeper)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new BookedCall(gatekeeper_, info);
  }

 private:
  const std::shared_ptr<Gatekeeper> gatekeeper_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Gatekeeper>> Gatekeeper::Open(Options options) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<LiveTlsDirectory> files,
                         LiveTlsDirectory::Open(options.tls_directory, options.role, options.clock));
  return std::shared_ptr<Gatekeeper>(new Gatekeeper(std::move(files), options));
}

Gatekeeper::Gatekeeper(std::shared_ptr<LiveTlsDirectory> files, const Options& options)
    : directory_(files->Files().path),
      files_(std::move(files)),
      clock_(options.clock),
      on_refusal_(options.on_refusal),
      connections_(std::make_shared<TlsConnections>(options.on_failed_handshake)),
      budgets_(options.budgets, options.clock),
      thread_([this] { WatchUntilClosed(); }) {}

void Gatekeeper::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
  connections_->Close();
}

absl::Status Gatekeeper::Check(absl::string_view certificate_pem, absl::string_view method) {
  const absl::StatusOr<CertificateFacts> peer = ReadCertificate(certificate_pem);
  if (!peer.ok()) {
    absl::Status why =
        absl::UnauthenticatedError(absl::StrCat("the certificate is not one of this fleet: ", peer.status().message()));
    Tell(nullptr, method, connections_->HostsOf(certificate_pem), why);
    return why;
  }
  absl::Status status = CheckAccess(*peer, method);
  if (!status.ok()) return Refuse(*peer, method, std::move(status));
  if (IsLogged(LogLevel::kDebug, kTlsLog)) {
    Log(LogLevel::kDebug, kTlsLog, {{}, 0, ClientOf(*peer)},
        absl::StrCat("'", peer->identity.name, "', ", RoleName(peer->identity.role), ", calls ", method));
  }
  return status;
}

absl::Status Gatekeeper::CheckAccess(const CertificateFacts& peer, absl::string_view method) {
  int64_t first = 1;
  TERSE_RETURN_IF_ERROR(CheckValid(peer, &first));
  if (!MayCall(peer.identity.role, method)) {
    return absl::PermissionDeniedError(absl::StrCat("'", peer.identity.name, "' is ", RoleName(peer.identity.role),
                                                    " by its certificate, which may not call ", method));
  }
  if (!TakesPart(peer.identity.role)) return absl::OkStatus();
  return budgets_.BeginCall(peer.identity.name, IsSession(method));
}

// The log has what the sink makes of it: whoever tries again and again could fill it.
void Gatekeeper::Tell(const CertificateFacts* peer, absl::string_view method, const std::string& host,
                      const absl::Status& why) const {
  if (on_refusal_) on_refusal_(peer, method, host, why);
}

absl::Status Gatekeeper::Refuse(const CertificateFacts& peer, absl::string_view method, absl::Status why) const {
  Tell(&peer, method, connections_->HostsOf(peer.pem), why);
  return why;
}

absl::Status Gatekeeper::CheckValid(const CertificateFacts& peer, int64_t* authority) const {
  // The handshake has looked at the signature, but perhaps under an authority that has been replaced since.
  if (const int64_t in_force = files_->authorities(); *authority != in_force) {
    if (!files_->CheckIssued(peer.pem).ok()) {
      return absl::UnauthenticatedError(absl::StrCat("the certificate ", peer.serial, " of '", peer.identity.name,
                                                     "' is not of the fleet's authority any more; the fleet's "
                                                     "operator can issue another one"));
    }
    *authority = in_force;
  }
  if (files_->IsRevoked(peer.serial)) {
    return absl::PermissionDeniedError(absl::StrCat("the certificate ", peer.serial, " of '", peer.identity.name,
                                                    "' is revoked; the fleet's operator can issue another one"));
  }
  if (absl::FromUnixMicros(clock_->NowMicros()) > peer.not_after) {
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate ", peer.serial, " of '", peer.identity.name, "' expired at ",
                     absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", peer.not_after, absl::UTCTimeZone()),
                     "; renew it with `tersectl pki issue --renew`"));
  }
  return absl::OkStatus();
}

absl::Status Gatekeeper::Book(grpc::ServerContextBase* call, const std::string& method, const CertificateFacts& peer) {
  absl::MutexLock lock(&mutex_);
  OpenCall opened{method, peer, HostTextOf(call->peer())};
  absl::Status status = CheckValid(peer, &opened.authority);
  if (status.ok() && TakesPart(peer.identity.role)) {
    status = budgets_.Opened(peer.identity.name, IsSession(method));
  }
  if (status.ok()) {
    open_calls_[call] = std::move(opened);
  } else {
    Tell(&peer, method, opened.host, status);
  }
  return status;
}

void Gatekeeper::Strike(grpc::ServerContextBase* call) {
  absl::MutexLock lock(&mutex_);
  if (const auto open = open_calls_.find(call); open != open_calls_.end()) Erase(open);
  if (std::this_thread::get_id() == thread_.get_id()) return;
  const auto is_free = [this, call]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return cancelling_ != call; };
  mutex_.Await(absl::Condition(&is_free));
}

void Gatekeeper::Erase(OpenCalls::iterator call) {
  const Identity& identity = call->second.peer.identity;
  if (TakesPart(identity.role)) budgets_.Ended(identity.name, IsSession(call->second.method));
  open_calls_.erase(call);
}

void Gatekeeper::WatchUntilClosed() {
  const auto interval = absl::Seconds(kTlsReloadSeconds);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&closing_), interval)) return;
    }
    Refresh();
    CancelInvalid();
  }
}

void Gatekeeper::Refresh() {
  const int64_t generation = files_->generation();
  const int64_t revoked = files_->revocations();
  const absl::Status status = files_->Refresh();
  const std::string trouble(status.message());
  if (trouble != trouble_) {
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kError, kTlsLog, {},
        status.ok() ? absl::StrCat(directory_, " is whole again")
                    : absl::StrCat(trouble, "; what was read before stays in force"));
  }
  trouble_ = trouble;
  if (files_->generation() != generation) {
    Log(LogLevel::kInfo, kTlsLog, {}, absl::StrCat("took the changed certificates of ", directory_));
  }
  if (const int64_t now_revoked = files_->revocations(); now_revoked != revoked) {
    Log(LogLevel::kInfo, kTlsLog, {},
        absl::StrCat("took the changed revocation list of ", directory_, ": ", now_revoked, " certificates"));
  }
}

void Gatekeeper::CancelInvalid() {
  std::vector<grpc::ServerContextBase*> invalid;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [call, open] : open_calls_) {
      if (!CheckValid(open.peer, &open.authority).ok()) invalid.push_back(call);
    }
  }
  for (grpc::ServerContextBase* call : invalid) {
    if (!BeginCancelling(call)) continue;
    call->TryCancel();
    absl::MutexLock lock(&mutex_);
    cancelling_ = nullptr;
  }
}

bool Gatekeeper::BeginCancelling(grpc::ServerContextBase* call) {
  absl::MutexLock lock(&mutex_);
  const auto open = open_calls_.find(call);
  if (open == open_calls_.end()) return false;
  const CertificateFacts& peer = open->second.peer;
  const absl::Status status = CheckValid(peer, &open->second.authority);
  if (status.ok()) return false;  // another call by now
  Log(LogLevel::kWarn, kTlsLog, {{}, 0, ClientOf(peer)},
      absl::StrCat("ending a call of '", peer.identity.name, "': ", status.message()));
  Tell(&peer, open->second.method, open->second.host, status);
  cancelling_ = call;
  Erase(open);
  return true;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallBook(
    std::shared_ptr<Gatekeeper> gatekeeper) {
  return std::make_unique<CallBook>(std::move(gatekeeper));
}

absl::Status CheckClaimedName(const absl::optional<CertificateFacts>& peer, const std::string& name) {
  if (!peer.has_value() || peer->identity.name == name) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the certificate is for '", peer->identity.name, "', not for '",
                                                    name, "': start the client with --name ", peer->identity.name,
                                                    " or with its own --tls folder"));
}

absl::Status CheckClaimedRelay(const absl::optional<CertificateFacts>& peer) {
  if (!peer.has_value() || peer->identity.role == Role::kRelay) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("'", peer->identity.name, "' is ", RoleName(peer->identity.role),
                   " by its certificate, and only a relay may stand for other clients: start the relay with a folder "
                   "that `tersectl pki issue relay` made"));
}

}  // namespace terse
