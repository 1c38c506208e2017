#include "security/certificate.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "core/status.h"
#include "security/openssl_types.h"
#include "security/x509_names.h"

namespace terse {
namespace {

absl::StatusOr<CertificateFacts> Facts(const X509& certificate) {
  int critical = 0;
  ERR_clear_error();
  const GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, &critical, nullptr)));
  ERR_clear_error();
  if (names == nullptr) {
    return absl::InvalidArgumentError(
        "it has no usable alternative names, and so no identity; `tersectl pki issue` makes one that has");
  }
  TERSE_ASSIGN_OR_RETURN(AlternativeNames alternatives, ReadAlternativeNames(*names));
  CertificateFacts facts;
  facts.identity = std::move(alternatives.request.identity);
  facts.hosts = std::move(alternatives.request.hosts);
  TERSE_ASSIGN_OR_RETURN(facts.serial, SerialText(X509_get0_serialNumber(&certificate)));
  TERSE_ASSIGN_OR_RETURN(facts.not_before, FromAsn1(X509_get0_notBefore(&certificate)));
  TERSE_ASSIGN_OR_RETURN(facts.not_after, FromAsn1(X509_get0_notAfter(&certificate)));
  return facts;
}

}  // namespace

absl::StatusOr<CertificateFacts> ReadCertificate(absl::string_view pem) {
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr certificate, ParseCertificate(pem, "a certificate"));
  absl::StatusOr<CertificateFacts> facts = Facts(*certificate);
  if (!facts.ok()) return Annotate(facts.status(), "the certificate cannot be used");
  facts->pem = std::string(pem);
  return facts;
}

absl::Status CheckIssuedBy(absl::string_view certificate_pem, absl::string_view authority_pem) {
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr certificate, ParseCertificate(certificate_pem, "a certificate"));
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr authority, ParseCertificate(authority_pem, "the authority"));
  ERR_clear_error();
  EVP_PKEY* const key = X509_get0_pubkey(authority.get());
  const bool is_signed = key != nullptr && X509_verify(certificate.get(), key) == 1;
  ERR_clear_error();
  return is_signed ? absl::OkStatus()
                   : absl::PermissionDeniedError("the fleet's authority did not sign the certificate");
}

absl::Status CheckKeyPair(absl::string_view certificate_pem, absl::string_view key_pem) {
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr certificate, ParseCertificate(certificate_pem, "a certificate"));
  TERSE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(key_pem));
  ERR_clear_error();
  const bool belong = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (belong) return absl::OkStatus();
  return absl::FailedPreconditionError("the private key is not that of the certificate; take both from one folder");
}

absl::StatusOr<std::string> MakeKey() {
  ERR_clear_error();
  const KeyPtr key(EVP_EC_gen("P-256"));
  const BioPtr bio(BIO_new(BIO_s_secmem()));  // wiped when it goes
  if (key == nullptr || bio == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("make a key");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace terse
