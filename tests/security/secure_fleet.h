// An authority, certificates of every kind, and a coordinator over TLS in the test's own process.
#ifndef TERSE_TESTS_SECURITY_SECURE_FLEET_H_
#define TERSE_TESTS_SECURITY_SECURE_FLEET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/rpc/coordinator_thread.h"
#include "security/authority.h"
#include "tests/testing/temp_directory.h"

namespace terse {

class SecureFleet {
 public:
  // A fleet with an authority and, for the coordinator, a certificate for 127.0.0.1 and localhost. Tests call
  // the address: Debian 12's c-ares, which gRPC resolves names with, leaks 10 bytes for each "localhost".
  SecureFleet();

  // Makes the TLS folder of a new certificate and returns its path.
  std::string Issue(Role role, const std::string& name, absl::Duration lifetime = absl::Hours(1),
                    const std::vector<std::string>& hosts = {});
  // The same from an authority that the fleet does not know.
  std::string IssueElsewhere(Role role, const std::string& name);
  // A certificate that its own key has signed, with the fleet's authority as the one trusted.
  std::string SelfSigned(Role role, const std::string& name);
  // A certificate of the fleet's authority, made with openssl, that names nobody.
  std::string WithoutIdentity();
  // Puts another certificate for the same key into a folder that Issue made.
  void Renew(const std::string& folder, Role role, const std::string& name, absl::Duration lifetime);
  // The same for the coordinator's own.
  void RenewCoordinator();
  // Puts another authority in the place of the fleet's, and the coordinator's folder under it, as after a theft.
  void ChangeAuthority();
  // Revokes all of a name, and tells the coordinator's folder.
  void Revoke(const std::string& name);

  // Serves the runs of `run_file`, or none without one, with TLS on all addresses, the dashboard's among them, and
  // writes the audit log to Path("audit.jsonl").
  void Serve(const std::string& run_file = "", const BudgetOptions& budgets = {});
  absl::Status Stop() { return coordinator_->Stop(); }

  const CoordinatorAddresses& addresses() const { return coordinator_->addresses(); }
  // Makes a path in the fleet's own directory.
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }
  const std::string& coordinator_tls() const { return coordinator_tls_; }
  // Returns the options with which a client reaches it: the certificate is for the address that it listens on.
  TransportOptions Transport(const std::string& folder) const;

 private:
  std::string IssueFrom(Authority* authority, const CertificateRequest& request, absl::Duration lifetime);
  void RenewFrom(const std::string& folder, const CertificateRequest& request, absl::Duration lifetime);

  TempDirectory directory_;
  int folders_ = 0;
  std::unique_ptr<Authority> authority_, other_authority_;
  std::string coordinator_tls_;
  std::unique_ptr<CoordinatorThread> coordinator_;
};

}  // namespace terse

#endif  // TERSE_TESTS_SECURITY_SECURE_FLEET_H_
