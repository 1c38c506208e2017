// The folder that `--tls` names: the certificate that a process shows to others, and the authority that it trusts.
#ifndef TERSE_SECURITY_TLS_DIRECTORY_H_
#define TERSE_SECURITY_TLS_DIRECTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "security/certificate.h"

namespace terse {

inline constexpr char kAuthorityFile[] = "ca.crt";      // the authority's certificate
inline constexpr char kCertificateFile[] = "node.crt";  // this process's own
inline constexpr char kKeyFile[] = "node.key";          // mode 0600
inline constexpr char kRequestFile[] = "node.csr";      // while the authority has not signed it
inline constexpr char kRevocationFile[] = "crl.pem";    // of who serves: a coordinator's, a relay's

struct TlsDirectory {
  std::string path;
  CertificateFacts certificate;
  // The contents of the three files when they were checked.
  std::string authority_pem, certificate_pem, key_pem;
};

// Reads and checks the folder: the certificate is of one of `roles`, is the key's, may be used by its role, and the
// authority signed it. Says nothing about the time. NOT_FOUND or INVALID_ARGUMENT naming the file; FAILED_PRECONDITION
// for a wrong role, key, authority or purpose. Each says what to do. Only the first certificate of ca.crt counts, so
// there must not be another: INVALID_ARGUMENT.
absl::StatusOr<TlsDirectory> ReadTlsDirectory(const std::string& path, const std::vector<Role>& roles);

// Acts as ReadTlsDirectory, and returns FAILED_PRECONDITION unless the certificate and its authority are within their
// time at `now`.
absl::StatusOr<TlsDirectory> OpenTlsDirectory(const std::string& path, const std::vector<Role>& roles,
                                              absl::Time now = absl::Now());

// The list in the folder, which is empty when there is no file. Statuses of ReadRevocationList, and NOT_FOUND when
// there is a list but no ca.crt.
absl::StatusOr<RevocationList> ReadRevocations(const std::string& path);

}  // namespace terse

#endif  // TERSE_SECURITY_TLS_DIRECTORY_H_
