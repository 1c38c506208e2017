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
#include "security/live_tls_directory.h"

namespace terse {

// Decides about every call of a TLS connection when it begins, and ends those that are open when their certificate is
// revoked or expires. A thread refreshes the TLS folder and looks at the clock every kTlsReloadSeconds; trouble with
// the folder is an error in the log, once. Thread-safe.
class Gatekeeper {
 public:
  // Statuses of LiveTlsDirectory::Open. `clock` must live until Close.
  static absl::StatusOr<std::shared_ptr<Gatekeeper>> Open(const std::string& tls_directory, Clock* clock);
  ~Gatekeeper() { Close(); }
  // Ends the thread, once no server calls any more: what gRPC still holds of this looks at nothing then.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<const LiveTlsDirectory> files() const { return files_; }

  // A CallCheck. UNAUTHENTICATED for a certificate that names nobody of this fleet or has expired, which may be mended;
  // PERMISSION_DENIED for a revoked one and for a role that may not call the method.
  absl::Status Check(absl::string_view certificate_pem, absl::string_view method) const;

  // Keeps an eye on a call until it is struck out, after which it is not touched again; cancels it at once if its
  // certificate is not valid any more.
  void Book(grpc::ServerContextBase* call, const CertificateFacts& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Strike(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Gatekeeper(std::shared_ptr<LiveTlsDirectory> files, Clock* clock);
  // What is wrong with a certificate, or with a call by who has it.
  absl::Status CheckAccess(const CertificateFacts& peer, absl::string_view method) const;
  // What is wrong with a certificate by itself.
  absl::Status CheckValid(const CertificateFacts& peer) const;
  void WatchUntilClosed() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refresh();
  void CancelInvalid() ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks a call that is still open and not valid as being cancelled.
  bool BeginCancelling(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string directory_;
  const std::shared_ptr<LiveTlsDirectory> files_;
  Clock* const clock_;
  std::string trouble_;  // with the folder, as it was logged last; the thread's own

  absl::Mutex mutex_;
  absl::flat_hash_map<grpc::ServerContextBase*, CertificateFacts> open_calls_ ABSL_GUARDED_BY(mutex_);
  // The call that the thread cancels, without the lock: its end may be told in that thread, before TryCancel returns.
  grpc::ServerContextBase* cancelling_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The server's hook that books calls; they are refused by Gatekeeper::Check before.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallBook(
    std::shared_ptr<Gatekeeper> gatekeeper);

// FAILED_PRECONDITION when a client says it is `name` and its certificate says otherwise. In cleartext names are taken
// for granted.
absl::Status CheckClaimedName(const grpc::AuthContext& context, const std::string& name);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_GATEKEEPER_H_
