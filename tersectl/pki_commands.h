// `tersectl pki`: the fleet's certificates. None of these needs a coordinator. docs/SECURITY.md explains them.
#ifndef TERSE_TERSECTL_PKI_COMMANDS_H_
#define TERSE_TERSECTL_PKI_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tersectl/commands.h"

namespace terse {

struct InitOptions : CommandOptions {
  std::string name = "fleet";
  int64_t days = 3650;
};

// For whom a certificate is, and where it goes.
struct SubjectOptions : CommandOptions {
  std::string role;
  std::string name;
  std::vector<std::string> hosts;
  bool renew = false;
  std::string out;  // the TLS folder
};

struct IssueOptions : SubjectOptions {
  int64_t days = 365;
};

struct SignOptions : CommandOptions {
  std::string request;  // the file
  int64_t days = 365;
  std::string role;  // empty unless repeated
  std::string out;   // the folder
};

struct RevokeOptions : CommandOptions {
  std::string name;               // or a serial number
  std::vector<std::string> into;  // TLS folders
};

struct CertificatesOptions : ListedOptions {
  bool revoked = false;
};

// All return the errors of Authority, of the certificates that they read, and of the file system. Each prints what it
// did and the next step, or with --json an object or a list.

absl::Status InitAuthority(const InitOptions& options, const Terminal& terminal);
// A key and a certificate in a folder. ALREADY_EXISTS when there is a key and --renew was not given; with it only the
// certificate is replaced, with the hosts that it had unless others are given.
absl::Status IssueCertificate(const IssueOptions& options, const Terminal& terminal);
// A key and a request in a folder, on the machine that will use the key.
absl::Status RequestCertificate(const SubjectOptions& options, const Terminal& terminal);
// FAILED_PRECONDITION when the request is not a client's and its role was not repeated: nobody gets an operator's
// certificate by asking for it.
absl::Status SignRequest(const SignOptions& options, const Terminal& terminal);
// Also when there is nothing to revoke, which is NOT_FOUND, the folders get the present list.
absl::Status RevokeCertificates(const RevokeOptions& options, const Terminal& terminal);
absl::Status ListCertificates(const CertificatesOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_PKI_COMMANDS_H_
