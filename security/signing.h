// Signs what an authority issues. For the sources of security/ only.
#ifndef TERSE_SECURITY_SIGNING_H_
#define TERSE_SECURITY_SIGNING_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "security/certificate.h"
#include "security/openssl_types.h"

namespace terse {

// Certificates begin so long before they are issued, for those whose clocks are behind.
inline constexpr absl::Duration kBackdating = absl::Minutes(5);

// INVALID_ARGUMENT unless it is a key of the curve P-256, named and not spelt out.
absl::Status CheckP256(EVP_PKEY* key);

struct Validity {
  absl::Time not_before;
  absl::Time not_after;
};

// The authority's own certificate.
absl::StatusOr<CertificatePtr> MakeAuthorityCertificate(const std::string& name, const Validity& validity,
                                                        EVP_PKEY* key);

// A certificate for the holder of `public_key`. `request` must have passed CheckCertificateRequest.
absl::StatusOr<CertificatePtr> MakeCertificate(const CertificateRequest& request, EVP_PKEY* public_key,
                                               const Validity& validity, X509* authority, EVP_PKEY* authority_key);

struct Revocation {
  std::string serial;  // as CertificateFacts::serial
  absl::Time time;
};

// A list of all entries of `previous`, which may be null, and `added`; its number is one above that of `previous`. Says
// that the next one comes when the authority ends.
absl::StatusOr<CrlPtr> MakeRevocationList(X509_CRL* previous, const std::vector<Revocation>& added, absl::Time now,
                                          X509* authority, EVP_PKEY* authority_key);

}  // namespace terse

#endif  // TERSE_SECURITY_SIGNING_H_
