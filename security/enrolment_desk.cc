#include "security/enrolment_desk.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_status.h"
#include "security/authority.h"
#include "security/invitation_book.h"
#include "security/transport.h"
#include "terse/v1/enrolment.grpc.pb.h"

namespace terse {
namespace {

constexpr int kMaxRequestBytes = 1 << 16;
constexpr int kMostThreads = 8;
constexpr absl::Duration kLifetime = absl::Hours(24 * 365);
constexpr absl::Duration kPatience = absl::Seconds(5);  // with another command that works in the folder
constexpr absl::Duration kPause = absl::Milliseconds(50);

// Waits for whoever works in the folder.
absl::StatusOr<std::unique_ptr<Authority>> OpenPatiently(const std::string& directory) {
  const absl::Time until = absl::Now() + kPatience;
  while (true) {
    absl::StatusOr<std::unique_ptr<Authority>> authority = Authority::Open(directory);
    if (!absl::IsFailedPrecondition(authority.status())) return authority;
    if (absl::Now() >= until) return absl::UnavailableError("the authority is busy; try again");
    absl::SleepFor(kPause);
  }
}

// What a guest is told: refusals as they are, and of what is wrong with the authority only that something is.
absl::Status ForGuests(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnavailable:
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
    if (server_ == nullptr) return;
    server_->Shutdown(absl::ToChronoTime(absl::Now() + kPatience));
    server_->Wait();
  }

  absl::Status Start() {
    TERSE_ASSIGN_OR_RETURN(const std::string key, MakeKey());
    TERSE_ASSIGN_OR_RETURN(const std::string request,
                           MakeRequest({{Role::kCoordinator, "enrolment"}, options_.hosts}, key));
    std::string certificate;
    {
      TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, OpenPatiently(options_.authority));
      const absl::Duration lifetime = std::min(kLifetime, authority->not_after() - authority->Now());
      TERSE_ASSIGN_OR_RETURN(certificate, authority->Issue(request, lifetime));
    }
    TERSE_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(certificate));
    not_after_ = facts.not_after;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options_.listen, ListenForGuests(certificate, key), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("enrolment").SetMaxThreads(kMostThreads));
    server_ = builder.BuildAndStart();
    if (server_ != nullptr && port_ != 0) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options_.listen, ": it is in use, or no address of this machine"));
  }

  grpc::Status Enrol(grpc::ServerContext* context, const v1::EnrolRequest* request, v1::EnrolReply* reply) override {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<std::string> certificate = Handle(*request);
    const auto facts = certificate.ok() ? ReadCertificate(*certificate) : certificate.status();
    options_.log(facts.ok() ? absl::StrCat("enrolled client '", facts->identity.name, "' from ", context->peer(),
                                           ", serial ", facts->serial)
                            : absl::StrCat("refused ", context->peer(), ": ", facts.status().message()));
    if (facts.ok()) reply->set_certificate_pem(*certificate);
    return ToGrpc(ForGuests(facts.status()));
  }

  int port() const { return port_; }
  absl::Time not_after() const { return not_after_; }

 private:
  absl::StatusOr<std::string> Handle(const v1::EnrolRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Authority> authority, OpenPatiently(options_.authority));
    return InvitationBook(authority.get(), &known_).Enrol(request.secret(), request.request_pem());
  }

  const EnrolmentDeskOptions options_;
  absl::Time not_after_;
  int port_ = 0;
  absl::Mutex mutex_;
  KnownCertificates known_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
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
