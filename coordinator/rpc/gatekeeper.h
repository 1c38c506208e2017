// Who may call what, and for how long: certificates of open calls against roles, revocations and time.
#ifndef TERSE_COORDINATOR_RPC_GATEKEEPER_H_
#define TERSE_COORDINATOR_RPC_GATEKEEPER_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/clock.h"
#include "grpcpp/grpcpp.h"
#include "security/certificate.h"

namespace terse {

// Decides about every call of a TLS connection when it begins, and ends those that are open when their certificate is
// revoked or expires. A thread looks at the TLS folder's revocation list and at the clock every kTlsReloadSeconds. A
// list that has become unreadable or is gone is reported in the log, and the last good one stays in force. Thread-safe.
class Gatekeeper {
 public:
  // Statuses of ReadRevocations. `clock` must outlive the gatekeeper.
  static absl::StatusOr<std::shared_ptr<Gatekeeper>> Open(const std::string& tls_directory, Clock* clock);
  ~Gatekeeper();

  // UNAUTHENTICATED for an expired certificate, which may be renewed; PERMISSION_DENIED for a revoked one and for a
  // role that may not call the method ("/package.Service/Method").
  absl::Status Check(const CertificateFacts& peer, absl::string_view method) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps an eye on a call until it is struck out, after which it is not touched again; cancels it at once if its
  // certificate is not valid any more.
  void Book(grpc::ServerContextBase* call, const CertificateFacts& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Strike(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Gatekeeper(std::string tls_directory, RevocationList revocations, Clock* clock);
  // What is wrong with a certificate by itself.
  absl::Status CheckValid(const CertificateFacts& peer) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void WatchUntilClosed() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the list again; logs trouble once.
  void Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelInvalid() ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks a call that is still open and not valid as being cancelled.
  bool BeginCancelling(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string tls_directory_;
  Clock* const clock_;
  std::string trouble_;  // with the list, as it was logged last; the thread's own

  mutable absl::Mutex mutex_;
  RevocationList revocations_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<grpc::ServerContextBase*, CertificateFacts> open_calls_ ABSL_GUARDED_BY(mutex_);
  // The call that the thread cancels, without the lock: its end may be told in that thread, before TryCancel returns.
  grpc::ServerContextBase* cancelling_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// A server's two hooks for it: the first refuses calls, the second books them.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeCallCheck(std::shared_ptr<Gatekeeper> gatekeeper);
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallBook(
    std::shared_ptr<Gatekeeper> gatekeeper);

// FAILED_PRECONDITION when a client says it is `name` and its certificate says otherwise. In cleartext names are taken
// for granted.
absl::Status CheckClaimedName(const grpc::AuthContext& context, const std::string& name);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_GATEKEEPER_H_
