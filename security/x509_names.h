// Names in certificates and requests: the subject, which nobody relies on, and the alternative names, which say who it
// is and where it is reached. For the sources of security/ only.
#ifndef TERSE_SECURITY_X509_NAMES_H_
#define TERSE_SECURITY_X509_NAMES_H_

#include <string>
#include <vector>

#include "security/certificate.h"
#include "security/openssl_types.h"

namespace terse {

// INVALID_ARGUMENT for a bad name or host, more than 64 hosts, or a coordinator without one.
absl::Status CheckCertificateRequest(const CertificateRequest& request);

// Sets organization "Terse" and the common name, cut to the 64 characters that X.509 allows. A common name has spaces,
// so that nobody takes it for a host.
absl::Status SetSubject(X509_NAME* subject, const std::string& common_name);
// "terse client berlin-1".
std::string CommonName(const Identity& identity);

// The identity's URI, then the hosts.
absl::StatusOr<GeneralNamesPtr> MakeAlternativeNames(const CertificateRequest& request);

struct AlternativeNames {
  CertificateRequest request;
  bool others = false;  // there are also names of other kinds, such as e-mail addresses
};

// INVALID_ARGUMENT unless there is exactly one URI and it is an identity, and all hosts are good ones.
absl::StatusOr<AlternativeNames> ReadAlternativeNames(const GENERAL_NAMES& names);

}  // namespace terse

#endif  // TERSE_SECURITY_X509_NAMES_H_
