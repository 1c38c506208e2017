// Decides who may do what at the dashboard: by the certificate's role over TLS, by a secret token in cleartext.
#ifndef TERSE_COORDINATOR_RPC_DASHBOARD_ACCESS_H_
#define TERSE_COORDINATOR_RPC_DASHBOARD_ACCESS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/rpc/audit_trail.h"
#include "coordinator/web/command_api.h"
#include "web/http_server.h"

namespace terse {

// The file in the state directory, mode 0600, with the token of this start of the coordinator.
inline constexpr char kTokenFile[] = "dashboard.token";

// In cleartext nobody is known, so everybody may look, and whoever shows the token, which only those can read who may
// also use the Unix socket of the operators, is an operator. Thread-safe.
class DashboardAccess {
 public:
  // Makes a token of 256 random bits and writes it to `state_directory`; with an empty one there is no token, because
  // every caller has a certificate. Statuses of ReplacePrivateFile; INTERNAL without random numbers. The trail must
  // outlive this.
  static absl::StatusOr<std::shared_ptr<const DashboardAccess>> Open(const std::string& state_directory,
                                                                     AuditTrail* audit);

  // A CleartextCheck. UNAUTHENTICATED for what only operators may call, unless the caller shows the token; that is in
  // the audit log.
  absl::Status CheckCleartext(const HttpCaller& caller, absl::string_view method) const;
  // Says who asks, and whether he is an operator now; nothing of it is in the audit log.
  Visitor VisitorOf(const HttpCaller& caller) const;

 private:
  DashboardAccess(std::string token, std::string file, AuditTrail* audit)
      : token_(std::move(token)), file_(std::move(file)), audit_(audit) {}
  bool HasToken(const HttpCaller& caller) const;
  std::string Hint(const HttpCaller& caller) const;

  const std::string token_;
  const std::string file_;
  AuditTrail* const audit_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_DASHBOARD_ACCESS_H_
