// Decides which callers may call what, and for how long: checks certificates of open calls against roles, revocations
// and time.
#ifndef TERSE_COORDINATOR_RPC_GATEKEEPER_H_
#define TERSE_COORDINATOR_RPC_GATEKEEPER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "coordinator/rpc/client_budgets.h"
#include "core/clock.h"
#include "grpcpp/grpcpp.h"
#include "security/certificate.h"
#include "security/live_tls_directory.h"
#include "security/tls_connections.h"

namespace terse {

// A call that was refused, or ended before its own end: whose it was, nullptr for a certificate that names nobody, the
// method, the caller's host, empty where it is unknown, and why. Called in gRPC's threads, so it must not wait.
using RefusalSink = std::function<void(const CertificateFacts* peer, absl::string_view method, const std::string& host,
                                       const absl::Status& why)>;

// Decides about every call of a TLS connection when it begins, and ends those that are open when their certificate is
// revoked or expires, or when its authority is not the fleet's any more. A thread refreshes the TLS folder and looks at
// the clock every kTlsReloadSeconds; trouble with the folder is an error in the log, once. Thread-safe.
class Gatekeeper {
 public:
  struct Options {
    std::string tls_directory;
    Clock* clock = nullptr;
    BudgetOptions budgets = {};                   // of each client
    RefusalSink on_refusal = nullptr;             // may be empty
    HandshakeSink on_failed_handshake = nullptr;  // likewise
    Role role = Role::kCoordinator;               // of the folder's certificate, as LiveTlsDirectory::Open
  };

  // Statuses of LiveTlsDirectory::Open. The clock and what the sinks use must live until Close.
  static absl::StatusOr<std::shared_ptr<Gatekeeper>> Open(Options options);
  ~Gatekeeper() { Close(); }
  // Ends the thread, once no server calls any more: what gRPC still holds of this looks at nothing then.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<const LiveTlsDirectory> files() const { return files_; }
  // The TLS connections of the servers that this decides for, once they are told to watch them.
  const std::shared_ptr<TlsConnections>& connections() const { return connections_; }
  ClientBudgets* budgets() { return &budgets_; }

  // A CallCheck. UNAUTHENTICATED for a certificate that names nobody of this fleet, has expired, or is another
  // authority's than the one in force, which may be mended;
  // PERMISSION_DENIED for a revoked one and for a role that may not call the method. UNAVAILABLE when a client's budget
  // is used up.
  absl::Status Check(absl::string_view certificate_pem, absl::string_view method);

  // Keeps an eye on a call until it is struck out, after which it is not touched again. UNAUTHENTICATED or
  // PERMISSION_DENIED when its certificate has ceased to be valid since Check, UNAVAILABLE when its client has opened
  // as many calls as it may since: whoever asked must end the call.
  absl::Status Book(grpc::ServerContextBase* call, const std::string& method, const CertificateFacts& peer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Strike(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells the sink of a refusal, if there is one, and returns `why`. The host is that of the connections with this
  // certificate.
  absl::Status Refuse(const CertificateFacts& peer, absl::string_view method, absl::Status why) const;

 private:
  struct OpenCall {
    std::string method;
    CertificateFacts peer;
    std::string host;
    int64_t authority = 1;  // that was last found to have issued the certificate, as LiveTlsDirectory counts them
  };

  Gatekeeper(std::shared_ptr<LiveTlsDirectory> files, const Options& options);
  void Tell(const CertificateFacts* peer, absl::string_view method, const std::string& host,
            const absl::Status& why) const;
  using OpenCalls = absl::flat_hash_map<grpc::ServerContextBase*, OpenCall>;
  void Erase(OpenCalls::iterator call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns what is wrong with a certificate, or with its holder's call of the method.
  absl::Status CheckAccess(const CertificateFacts& peer, absl::string_view method);
  // Returns what is wrong with a certificate by itself. Updates `authority`, the one that is known to have issued it.
  absl::Status CheckValid(const CertificateFacts& peer, int64_t* authority) const;
  void WatchUntilClosed() ABSL_LOCKS_EXCLUDED(mutex_);
  void Refresh();
  void CancelInvalid() ABSL_LOCKS_EXCLUDED(mutex_);
  // Marks a call that is still open and not valid as being cancelled.
  bool BeginCancelling(grpc::ServerContextBase* call) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string directory_;
  const std::shared_ptr<LiveTlsDirectory> files_;
  Clock* const clock_;
  const RefusalSink on_refusal_;
  const std::shared_ptr<TlsConnections> connections_;
  ClientBudgets budgets_;
  std::string trouble_;  // with the folder, as it was logged last; the thread's own

  absl::Mutex mutex_;
  OpenCalls open_calls_ ABSL_GUARDED_BY(mutex_);
  // The call that the thread cancels, without the lock: its end may be told in that thread, before TryCancel returns.
  grpc::ServerContextBase* cancelling_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The server's hook that books calls; they are refused by Gatekeeper::Check before.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallBook(
    std::shared_ptr<Gatekeeper> gatekeeper);

// FAILED_PRECONDITION when a client says it is `name` and its certificate says otherwise. Without a certificate names
// are taken for granted.
absl::Status CheckClaimedName(const absl::optional<CertificateFacts>& peer, const std::string& name);
// PERMISSION_DENIED when a client says that it stands for others, and its certificate is not a relay's. Without a
// certificate everybody is believed.
absl::Status CheckClaimedRelay(const absl::optional<CertificateFacts>& peer);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_GATEKEEPER_H_
