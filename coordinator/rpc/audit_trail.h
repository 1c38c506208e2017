// Writes the audit log: which caller did what, and which was refused (docs/SECURITY.md, "Audit log").
#ifndef TERSE_COORDINATOR_RPC_AUDIT_TRAIL_H_
#define TERSE_COORDINATOR_RPC_AUDIT_TRAIL_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/rpc/counted_records.h"
#include "coordinator/web/operator_desk.h"
#include "core/clock.h"
#include "grpcpp/grpcpp.h"
#include "security/certificate.h"
#include "storage/audit_log.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// The action that a caller asked for.
struct AuditedAction {
  std::string method;  // "Pause"
  std::string run;     // as the caller named it
  std::string detail;  // for people; no secrets
};

// One for the process. Refusals are written by a thread of its own: the first of a kind (caller, method, code and
// network of the address, or for handshakes the reason and that network) within a second or so, and those that follow
// within a minute as one record with their number, so that a device that tries again and again does not push everything
// else out. Thread-safe.
class AuditTrail {
 public:
  struct Options {
    std::string state_directory;
    std::string file;        // where to append each record that has ended as a line of JSON; empty: nowhere
    Clock* clock = nullptr;  // must outlive this
    // Called in some thread when a sync failed; does not return.
    std::function<void(const absl::Status&)> on_sync_failure;
  };

  // Opens the log and ends what an earlier process left begun. Statuses of AuditLog::Open; PERMISSION_DENIED, NOT_FOUND
  // and others of the system when `file` cannot be written.
  static absl::StatusOr<std::unique_ptr<AuditTrail>> Open(Options options);
  // Writes the refusals that were counted.
  ~AuditTrail();

  // Writes down that the caller does this, does it, and writes down what came of it. An action that cannot be written
  // down is not done: FAILED_PRECONDITION with the reason.
  grpc::Status Carry(const AuditedCaller& caller, const AuditedAction& action, absl::FunctionRef<grpc::Status()> act);

  // A call that was refused, or ended because of its certificate. `peer` is nullptr for one that names nobody of this
  // fleet. `method` as gRPC has it, "/terse.v1.Admin/Pause"; `host` is the caller's, empty where it is unknown. Never
  // waits for the disk.
  void Refused(const CertificateFacts* peer, absl::string_view method, const std::string& host, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Refused(const AuditedCaller& caller, absl::string_view method, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A connection whose TLS handshake failed (security/tls_connections.h). Never waits for the disk.
  void HandshakeFailed(const std::string& host, const std::string& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // The newest `limit`, oldest first, without refusals that are still being counted. Statuses of AuditLog.
  absl::StatusOr<std::vector<AuditRecord>> Newest(int64_t limit) const { return log_->Newest(limit); }

 private:
  AuditTrail(Options options, std::unique_ptr<AuditLog> log);
  void WriteRefusalsUntilClosed() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteRefusals(bool all) ABSL_LOCKS_EXCLUDED(mutex_);
  // One of the two below.
  void WriteDue(CountedRecords* counted, bool all) ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks at an error of the log: a sync that failed ends the process, everything else is in the process's log, once.
  void Examine(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Append(const AuditRecord& record) const;

  const Options options_;
  const std::unique_ptr<AuditLog> log_;

  absl::Mutex mutex_;
  CountedRecords calls_ ABSL_GUARDED_BY(mutex_);
  CountedRecords handshakes_ ABSL_GUARDED_BY(mutex_);
  std::string trouble_ ABSL_GUARDED_BY(mutex_);  // as it was logged last
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The names of callers without a certificate: on the Unix socket, over TCP, and at the dashboard with its token.
inline constexpr char kSocketCaller[] = "socket";
inline constexpr char kCleartextCaller[] = "cleartext";
inline constexpr char kTokenCaller[] = "token";

// Returns the caller as the log names it: role and name of the certificate, or one of the first two above.
AuditedCaller CallerOf(const grpc::ServerContextBase& call);
// Likewise of a certificate whose connection comes from `host`.
AuditedCaller CallerOf(const CertificateFacts& peer, const std::string& host);

void Fill(const AuditRecord& record, v1::AuditRecord* out);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_AUDIT_TRAIL_H_
