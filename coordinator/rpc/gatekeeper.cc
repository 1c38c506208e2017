#include "coordinator/rpc/gatekeeper.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/access.h"
#include "core/log/log.h"
#include "core/status.h"
#include "security/transport.h"

namespace terse {
namespace {

// For the log: empty for those who are none.
absl::string_view ClientOf(const CertificateFacts& peer) {
  return peer.identity.role == Role::kClient ? absl::string_view(peer.identity.name) : "";
}

// Books a call from its first metadata to its end.
class BookedCall : public grpc::experimental::Interceptor {
 public:
  BookedCall(std::shared_ptr<Gatekeeper> gatekeeper, grpc::ServerContextBase* call)
      : gatekeeper_(std::move(gatekeeper)), call_(call) {}

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
    if (peer.ok() && peer->has_value()) gatekeeper_->Book(call_, **peer);
  }

  const std::shared_ptr<Gatekeeper> gatekeeper_;
  grpc::ServerContextBase* const call_;
};

class CallBook : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallBook(std::shared_ptr<Gatekeeper> gatekeeper) : gatekeeper_(std::move(gatekeeper)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new BookedCall(gatekeeper_, info->server_context());
  }

 private:
  const std::shared_ptr<Gatekeeper> gatekeeper_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<Gatekeeper>> Gatekeeper::Open(const std::string& tls_directory, Clock* clock) {
  TERSE_ASSIGN_OR_RETURN(std::shared_ptr<LiveTlsDirectory> files, LiveTlsDirectory::Open(tls_directory, clock));
  return std::shared_ptr<Gatekeeper>(new Gatekeeper(std::move(files), clock));
}

Gatekeeper::Gatekeeper(std::shared_ptr<LiveTlsDirectory> files, Clock* clock)
    : directory_(files->Files().path),
      files_(std::move(files)),
      clock_(clock),
      thread_([this] { WatchUntilClosed(); }) {}

void Gatekeeper::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status Gatekeeper::Check(absl::string_view certificate_pem, absl::string_view method) const {
  const absl::StatusOr<CertificateFacts> peer = ReadCertificate(certificate_pem);
  const absl::Status status = peer.ok() ? CheckAccess(*peer, method)
                                        : absl::UnauthenticatedError(absl::StrCat(
                                              "the certificate is not one of this fleet: ", peer.status().message()));
  if (!status.ok()) {
    Log(LogLevel::kWarn, kTlsLog, {{}, 0, peer.ok() ? ClientOf(*peer) : ""},
        absl::StrCat("refused a call of ", method, ": ", status.message()));
  } else if (IsLogged(LogLevel::kDebug, kTlsLog)) {
    Log(LogLevel::kDebug, kTlsLog, {{}, 0, ClientOf(*peer)},
        absl::StrCat("'", peer->identity.name, "', ", RoleName(peer->identity.role), ", calls ", method));
  }
  return status;
}

absl::Status Gatekeeper::CheckAccess(const CertificateFacts& peer, absl::string_view method) const {
  TERSE_RETURN_IF_ERROR(CheckValid(peer));
  if (MayCall(peer.identity.role, method)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("'", peer.identity.name, "' is ", RoleName(peer.identity.role),
                                                  " by its certificate, which may not call ", method));
}

absl::Status Gatekeeper::CheckValid(const CertificateFacts& peer) const {
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

void Gatekeeper::Book(grpc::ServerContextBase* call, const CertificateFacts& peer) {
  {
    absl::MutexLock lock(&mutex_);
    if (CheckValid(peer).ok()) {
      open_calls_[call] = peer;
      return;
    }
  }
  call->TryCancel();
}

void Gatekeeper::Strike(grpc::ServerContextBase* call) {
  absl::MutexLock lock(&mutex_);
  open_calls_.erase(call);
  if (std::this_thread::get_id() == thread_.get_id()) return;
  const auto is_free = [this, call]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return cancelling_ != call; };
  mutex_.Await(absl::Condition(&is_free));
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
    for (const auto& [call, peer] : open_calls_) {
      if (!CheckValid(peer).ok()) invalid.push_back(call);
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
  const absl::Status status = CheckValid(open->second);
  if (status.ok()) return false;  // another call by now
  Log(LogLevel::kWarn, kTlsLog, {{}, 0, ClientOf(open->second)},
      absl::StrCat("ending a call of '", open->second.identity.name, "': ", status.message()));
  cancelling_ = call;
  open_calls_.erase(open);
  return true;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallBook(
    std::shared_ptr<Gatekeeper> gatekeeper) {
  return std::make_unique<CallBook>(std::move(gatekeeper));
}

absl::Status CheckClaimedName(const grpc::AuthContext& context, const std::string& name) {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<CertificateFacts> peer, PeerCertificate(context));
  if (!peer.has_value() || peer->identity.name == name) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the certificate is for '", peer->identity.name, "', not for '",
                                                    name, "': start the client with --name ", peer->identity.name,
                                                    " or with its own --tls folder"));
}

}  // namespace terse
