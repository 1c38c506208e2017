#include <openssl/err.h>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "security/certificate.h"
#include "security/openssl_types.h"

namespace terse {
namespace {

// Refuses a list that covers only a part, because what it leaves out would count as not revoked. Such lists say so in
// critical extensions (RFC 5280, 5.2), and so does everything that must not be ignored.
absl::Status CheckComplete(const X509_CRL& list) {
  for (int i = 0; i < X509_CRL_get_ext_count(&list); ++i) {
    if (X509_EXTENSION_get_critical(X509_CRL_get_ext(&list, i)) != 0) {
      return absl::InvalidArgumentError(
          "the revocation list has a critical extension, so it may be none of all certificates; give the whole list");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSigned(X509_CRL* list, const X509& authority) {
  ERR_clear_error();
  EVP_PKEY* const key = X509_get0_pubkey(&authority);
  const bool good = key != nullptr &&
                    X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(&authority)) == 0 &&
                    X509_CRL_verify(list, key) == 1;
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the revocation list is not signed by this authority; take ca.crt and crl.pem from the same one");
}

}  // namespace

absl::StatusOr<RevocationList> ReadRevocationList(absl::string_view crl_pem, absl::string_view authority_pem) {
  TERSE_ASSIGN_OR_RETURN(const CrlPtr list, ParseRevocationList(crl_pem));
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr authority,
                         ParseCertificate(authority_pem, "the authority's certificate"));
  TERSE_RETURN_IF_ERROR(CheckSigned(list.get(), *authority));
  TERSE_RETURN_IF_ERROR(CheckComplete(*list));
  RevocationList result;
  absl::StatusOr<absl::Time> issued = FromAsn1(X509_CRL_get0_lastUpdate(list.get()));
  if (!issued.ok()) return Annotate(issued.status(), "the revocation list cannot be used");
  result.issued = *issued;
  STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
    const X509_REVOKED* const entry = sk_X509_REVOKED_value(revoked, i);
    absl::StatusOr<std::string> serial = SerialText(X509_REVOKED_get0_serialNumber(entry));
    if (!serial.ok()) return Annotate(serial.status(), "the revocation list cannot be used");
    result.serials.insert(*std::move(serial));
  }
  return result;
}

}  // namespace terse
