// X.509 certificates, keys and revocation lists as Terse uses them: PEM in, facts out. OpenSSL stays in the source
// file.
#ifndef TERSE_SECURITY_CERTIFICATE_H_
#define TERSE_SECURITY_CERTIFICATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "security/identity.h"

namespace terse {

// Larger files are refused before they are parsed.
inline constexpr int64_t kMaxPemBytes = 1 << 20;

struct CertificateFacts {
  Identity identity;
  std::string serial;  // hexadecimal digits in lower case, without leading zeros
  absl::Time not_before;
  absl::Time not_after;
  std::vector<std::string> hosts;  // DNS names and IP addresses of the subject alternative names, in order
  std::string pem;                 // what they were read from
};

// The first certificate of `pem`. INVALID_ARGUMENT when there is none, or when it has not exactly one URI of an
// identity. Verifies nothing.
absl::StatusOr<CertificateFacts> ReadCertificate(absl::string_view pem);

// PERMISSION_DENIED unless the authority of `authority_pem` signed the certificate; INVALID_ARGUMENT when one of them
// is unreadable. Says nothing about the time or the purpose.
absl::Status CheckIssuedBy(absl::string_view certificate_pem, absl::string_view authority_pem);

// FAILED_PRECONDITION unless the private key is the certificate's; INVALID_ARGUMENT when one of them is unreadable.
absl::Status CheckKeyPair(absl::string_view certificate_pem, absl::string_view key_pem);

// A revocation list, as the authority signed it.
struct RevocationList {
  absl::flat_hash_set<std::string> serials;  // as CertificateFacts::serial
  absl::Time issued = absl::InfinitePast();
};

// INVALID_ARGUMENT when `crl_pem` is no list, or one that may cover only a part of the certificates; PERMISSION_DENIED
// when the authority of `authority_pem` did not sign it. A list whose next-update time has passed is still taken: to
// forget revocations would be worse than an old list.
absl::StatusOr<RevocationList> ReadRevocationList(absl::string_view crl_pem, absl::string_view authority_pem);

// A new P-256 key, PKCS #8 in PEM.
absl::StatusOr<std::string> MakeKey();

// The contents of a request for a certificate.
struct CertificateRequest {
  Identity identity;
  std::vector<std::string> hosts;  // where a coordinator is reached: DNS names or IP addresses; others need none
};

// PKCS #10, signed with the key. INVALID_ARGUMENT for a bad name, a host that is neither a DNS name nor an address,
// more than 64 of them, a coordinator without one, or a key that is unreadable or none of MakeKey's kind.
absl::StatusOr<std::string> MakeRequest(const CertificateRequest& request, absl::string_view key_pem);
// Checks the signature: PERMISSION_DENIED when it is not the request's own key's. INVALID_ARGUMENT for anything else
// that MakeRequest does not write, but for the subject, which nobody looks at.
absl::StatusOr<CertificateRequest> ReadRequest(absl::string_view request_pem);
// Checks, as CheckKeyPair, that the key is the request's.
absl::Status CheckRequestKey(absl::string_view request_pem, absl::string_view key_pem);

// SHA-256 of the public key (SubjectPublicKeyInfo, DER), in hexadecimal digits. INVALID_ARGUMENT when it is unreadable.
absl::StatusOr<std::string> RequestKeyHash(absl::string_view request_pem);

}  // namespace terse

#endif  // TERSE_SECURITY_CERTIFICATE_H_
