#include "security/enrolment_desk.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/clock.h"
#include "core/host_port.h"
#include "core/status.h"
#include "grpcpp/grpcpp.h"
#include "net/open_files.h"
#include "net/peer.h"
#include "net/rate_limit.h"
#include "proto/grpc_status.h"
#include "security/authority.h"
#include "security/invitation_book.h"
#include "security/tcp_server.h"
#include "security/tls_connections.h"
#include "security/transport.h"
#include "terse/v1/enrolment.grpc.pb.h"

namespace terse {
namespace {

constexpr int kMaxRequestBytes = 1 << 16;
constexpr int kMostThreads = 8;
constexpr absl::Duration kLifetime = absl::Hours(24 * 365);
constexpr absl::Duration kPatience = absl::Seconds(5);  // with another command that works in the folder
// A device connects, asks, and goes.
constexpr ConnectionPatience kConnectionPatience = {absl::Seconds(10), absl::Seconds(10)};
constexpr int64_t kConnections = 256;
constexpr int64_t kFilesForOthers = 64;    // the authority's, gRPC's and the listening sockets
constexpr double kFailuresPerMinute = 30;  // handshakes, of all addresses, that get a line
constexpr int64_t kAddressesThatFill = 4;  // as many may take all connections, and not fewer

absl::StatusOr<Acceptor::Bounds> DeskBounds() {
  TERSE_ASSIGN_OR_RETURN(const int64_t files, RaiseOpenFiles());
  const int64_t connections = std::min(kConnections, files - kFilesForOthers);
  if (connections >= kAddressesThatFill) {
    return Acceptor::Bounds{connections, connections / kAddressesThatFill, /*loopback_too=*/true};
  }
  return absl::FailedPreconditionError(absl::StrCat("the system lets this process open ", files,
                                                    " files, and it needs ", kFilesForOthers + kAddressesThatFill,
                                                    "; raise that (ulimit -n, LimitNOFILE=)"));
}

// Returns the status that a guest is told: refusals as they are, and trouble of the authority without its details.
absl::Status ForGuests(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return status;
    default:
      return absl::InternalError("it cannot serve; its log says why");
  }
}

}  // namespace

class EnrolmentDesk::Impl : public v1::Enrolment::Service {
 public:
  explicit Impl(EnrolmentDeskOptions options) : options_(std::move(options)) {}
  ~Impl() override {
    if (tcp_.server != nullptr) {
      tcp_.acceptor.reset();
      tcp_.server->Shutdown(absl::ToChronoTime(absl::Now() + kPatience));
      tcp_.server->Wait();
    }
    connections_->Close();
  }

  absl::Status Start() {
    TERSE_ASSIGN_OR_RETURN(const std::string key, MakeKey());
    TERSE_ASSIGN_OR_RETURN(const std::string request,
                           MakeRequest({{Role::kCoordinator, "enrolment"}, options_.hosts}, key));
    std::string certificate;
    {
      TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, Authority::Open(options_.authority));
      const absl::Duration lifetime = std::min(kLifetime, authority->not_after() - authority->Now());
      TERSE_ASSIGN_OR_RETURN(certificate, authority->Issue(request, lifetime));
    }
    TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(certificate));
    not_after_ = facts.not_after;
    return Listen(ListenForGuests(certificate, key));
  }

  grpc::Status Enrol(grpc::ServerContext* context, const v1::EnrolRequest* request, v1::EnrolReply* reply) override {
    const std::string peer = context->peer();
    const absl::StatusOr<std::string> certificate = Handle(*request);
    const auto facts = certificate.ok() ? ReadCertificate(*certificate) : certificate.status();
    if (!facts.ok()) return ToGrpc(ForGuests(Refuse(peer, facts.status())));
    Say(absl::StrCat("enrolled client '", facts->identity.name, "' from ", peer, ", serial ", facts->serial));
    reply->set_certificate_pem(*certificate);
    return grpc::Status::OK;
  }

  int port() const {
    const absl::StatusOr<HostPort> address = ParseHostPort(tcp_.address);
    return address.ok() ? address->port : 0;
  }
  absl::Time not_after() const { return not_after_; }

 private:
  absl::Status Listen(std::shared_ptr<grpc::ServerCredentials> credentials) {
    TERSE_ASSIGN_OR_RETURN(const Acceptor::Bounds bounds, DeskBounds());
    Acceptor::Options acceptor{options_.listen, bounds};
    acceptor.log = [this](LogLevel, absl::string_view line) { Say(line); };
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("enrolment").SetMaxThreads(kMostThreads));
    absl::StatusOr<TcpServer> tcp =
        ServeTcp(acceptor, kConnectionPatience, std::move(credentials), connections_, &builder);
    if (!tcp.ok()) return Annotate(tcp.status(), absl::StrCat("cannot listen on ", options_.listen));
    tcp_ = *std::move(tcp);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Handle(const v1::EnrolRequest& request) ABSL_LOCKS_EXCLUDED(mutex_) {
    TERSE_RETURN_IF_ERROR(ExamineGuest(options_.authority, request.secret(), request.request_pem()).status());
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<std::unique_ptr<Authority>> authority =
        Authority::Open(options_.authority, /*clock=*/nullptr, kPatience);
    if (absl::IsFailedPrecondition(authority.status())) {
      return absl::UnavailableError("the authority is busy; try again");
    }
    TERSE_RETURN_IF_ERROR(authority.status());
    return InvitationBook(authority->get(), &known_).Enrol(request.secret(), request.request_pem());
  }

  // The refusal that the guest gets.
  absl::Status Refuse(const std::string& peer, const absl::Status& why) ABSL_LOCKS_EXCLUDED(log_mutex_) {
    const std::string address = PeerOfText(peer);
    const absl::Duration wait = refusals_.Take(address);
    if (wait == absl::ZeroDuration()) {
      Say(absl::StrCat("refused ", peer, ": ", why.message()));
      return why;
    }
    if (too_many_.Take(address) == absl::ZeroDuration()) {
      Say(absl::StrCat("refused ", PeerText(address), " too often; it is told to wait, without a line each time. The ",
                       "last: ", why.message()));
    }
    return absl::ResourceExhaustedError(absl::StrCat("too many of your requests were refused; the next is heard in ",
                                                     absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1))), " s"));
  }

  void HandshakeFailed(const std::string& host, const std::string& reason) ABSL_LOCKS_EXCLUDED(log_mutex_) {
    const bool is_said = failures_.Take(NetworkOfHost(host)) == absl::ZeroDuration() &&
                         all_failures_.Take("all") == absl::ZeroDuration();
    if (!is_said) {
      ++unsaid_failures_;
      return;
    }
    const int64_t more = unsaid_failures_.exchange(0);
    Say(absl::StrCat("TLS handshake of ", host, " failed: ", reason,
                     more == 0 ? "" : absl::StrCat("; before it ", more, " that no line tells of")));
  }

  void Say(absl::string_view line) ABSL_LOCKS_EXCLUDED(log_mutex_) {
    absl::MutexLock lock(&log_mutex_);
    options_.log(line);
  }

  const EnrolmentDeskOptions options_;
  absl::Time not_after_;
  absl::Mutex mutex_;  // one guest at a time works with the authority
  KnownCertificates known_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex log_mutex_;
  SystemClock clock_;
  RateLimit refusals_{{kRefusalsPerMinute, kRefusalsAtOnce}, &clock_};
  RateLimit too_many_{{1, 1}, &clock_};
  RateLimit failures_{{1, 1}, &clock_}, all_failures_{{kFailuresPerMinute, kFailuresPerMinute}, &clock_};
  std::atomic<int64_t> unsaid_failures_{0};
  // gRPC lets go of connections when it likes, so it is closed before the rest goes.
  const std::shared_ptr<TlsConnections> connections_ = std::make_shared<TlsConnections>(
      [this](const std::string& host, const std::string& reason) { HandshakeFailed(host, reason); });
  TcpServer tcp_;
};

EnrolmentDesk::EnrolmentDesk(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EnrolmentDesk::~EnrolmentDesk() = default;

absl::StatusOr<std::unique_ptr<EnrolmentDesk>> EnrolmentDesk::Start(EnrolmentDeskOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  TERSE_RETURN_IF_ERROR(impl->Start());
  return absl::WrapUnique(new EnrolmentDesk(std::move(impl)));
}

int EnrolmentDesk::port() const { return impl_->port(); }
absl::Time EnrolmentDesk::not_after() const { return impl_->not_after(); }

}  // namespace terse
