#include "tests/security/secure_fleet.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "security/tls_directory.h"
#include "tests/testing/grid_learning.h"

namespace terse {
namespace {

void Write(const std::string& folder, const char* name, const std::string& bytes) {
  const absl::Status written = ReplaceFile(PosixFiles(), absl::StrCat(folder, "/", name), {bytes});
  ASSERT_TRUE(written.ok()) << written;
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return *std::move(value);
}

CertificateRequest OwnRequest() { return {{Role::kCoordinator, "coordinator"}, {"localhost", "127.0.0.1"}}; }

}  // namespace

SecureFleet::SecureFleet() {
  authority_ = Must(Authority::Create(Path("pki"), "fleet", absl::Hours(24)));
  coordinator_tls_ = IssueFrom(authority_.get(), OwnRequest(), absl::Hours(1));
}

std::string SecureFleet::IssueFrom(Authority* authority, const CertificateRequest& request, absl::Duration lifetime) {
  const std::string folder = Path(absl::StrCat("tls-", folders_++));
  EXPECT_TRUE(PosixFiles().MakeDirectory(folder).ok());
  const std::string key = Must(MakeKey());
  Write(folder, kKeyFile, key);
  Write(folder, kCertificateFile, Must(authority->Issue(Must(MakeRequest(request, key)), lifetime)));
  Write(folder, kAuthorityFile, authority->certificate());
  Write(folder, kRevocationFile, Must(authority->RevocationListPem()));
  return folder;
}

std::string SecureFleet::Issue(Role role, const std::string& name, absl::Duration lifetime,
                               const std::vector<std::string>& hosts) {
  return IssueFrom(authority_.get(), {{role, name}, hosts}, lifetime);
}

std::string SecureFleet::IssueElsewhere(Role role, const std::string& name) {
  if (other_authority_ == nullptr) {
    other_authority_ = Must(Authority::Create(Path("other-pki"), "other", absl::Hours(24)));
  }
  const std::string folder = IssueFrom(other_authority_.get(), {{role, name}, {}}, absl::Hours(1));
  Write(folder, kAuthorityFile, authority_->certificate());
  return folder;
}

std::string SecureFleet::SelfSigned(Role role, const std::string& name) {
  const std::string folder = Issue(role, name);
  const std::string command = absl::StrCat("openssl req -x509 -key ", folder, "/", kKeyFile,
                                           " -subj /CN=self -addext 'subjectAltName=URI:", ToUri({role, name}),
                                           "' -addext 'extendedKeyUsage=clientAuth' -days 2 -out ", folder, "/",
                                           kCertificateFile, " 2>/dev/null");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return folder;
}

std::string SecureFleet::WithoutIdentity() {
  const std::string folder = Issue(Role::kOperator, "nobody");
  const std::string authority = absl::StrCat(Path("pki"), "/ca");
  const std::string command = absl::StrCat(
      "openssl req -new -key ", folder, "/", kKeyFile, " -subj /CN=nobody | openssl x509 -req -CA ", authority,
      ".crt -CAkey ", authority, ".key -CAcreateserial -days 1 -out ", folder, "/", kCertificateFile, " 2>/dev/null");
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return folder;
}

void SecureFleet::Renew(const std::string& folder, Role role, const std::string& name, absl::Duration lifetime) {
  RenewFrom(folder, {{role, name}, {}}, lifetime);
}

void SecureFleet::RenewCoordinator() { RenewFrom(coordinator_tls_, OwnRequest(), absl::Hours(1)); }

void SecureFleet::RenewFrom(const std::string& folder, const CertificateRequest& request, absl::Duration lifetime) {
  const std::string key = Must(PosixFiles().Read(absl::StrCat(folder, "/", kKeyFile)));
  Write(folder, kCertificateFile, Must(authority_->Issue(Must(MakeRequest(request, key)), lifetime)));
}

void SecureFleet::ChangeAuthority() {
  authority_ = Must(Authority::Create(Path("second-pki"), "second", absl::Hours(24)));
  const std::string made = IssueFrom(authority_.get(), OwnRequest(), absl::Hours(1));
  for (const char* name : {kKeyFile, kCertificateFile, kAuthorityFile, kRevocationFile}) {
    Write(coordinator_tls_, name, Must(PosixFiles().Read(absl::StrCat(made, "/", name))));
  }
}

void SecureFleet::Revoke(const std::string& name) {
  Must(authority_->Revoke(name));
  Write(coordinator_tls_, kRevocationFile, Must(authority_->RevocationListPem()));
}

void SecureFleet::Serve(const std::string& run_file, const BudgetOptions& budgets) {
  CoordinatorOptions options;
  options.budgets = budgets;
  if (!run_file.empty()) options.run_files = {run_file};
  options.state_directory = Path("state");
  options.listen = "127.0.0.1:0";
  options.admin = "127.0.0.1:0";
  options.transport.tls_directory = coordinator_tls_;
  options.audit_file = Path("audit.jsonl");
  // The loopback address as IsLocalAddress does not know it: to one that it knows the dashboard speaks without TLS.
  options.http = "127.1:0";
  coordinator_ = std::make_unique<CoordinatorThread>(options, GridLearningFactory());
  ASSERT_FALSE(addresses().fleet.empty()) << Stop();
}

TransportOptions SecureFleet::Transport(const std::string& folder) const {
  TransportOptions transport;
  transport.tls_directory = folder;
  return transport;
}

}  // namespace terse
