#include "security/signing.h"

#include <openssl/bn.h>
#include <openssl/err.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "security/x509_names.h"

namespace terse {
namespace {

constexpr int kSerialBits = 128;

absl::StatusOr<IntegerPtr> RandomSerial() {
  ERR_clear_error();
  const BignumPtr number(BN_new());
  if (number == nullptr || BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1) {
    return OpensslError("draw a serial number");
  }
  IntegerPtr serial(BN_to_ASN1_INTEGER(number.get(), nullptr));
  if (serial == nullptr) return OpensslError("write a serial number");
  return serial;
}

// `value` as in OpenSSL's configuration files.
absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1) {
    return OpensslError("write an extension");
  }
  return absl::OkStatus();
}

// Makes the parts that both kinds of certificate have.
absl::StatusOr<CertificatePtr> NewCertificate(const std::string& common_name, EVP_PKEY* public_key,
                                              const Validity& validity) {
  TERSE_ASSIGN_OR_RETURN(const IntegerPtr serial, RandomSerial());
  TERSE_ASSIGN_OR_RETURN(const TimePtr not_before, ToAsn1(validity.not_before));
  TERSE_ASSIGN_OR_RETURN(const TimePtr not_after, ToAsn1(validity.not_after));
  ERR_clear_error();
  CertificatePtr made(X509_new());
  if (made == nullptr || X509_set_version(made.get(), X509_VERSION_3) != 1 ||
      X509_set_serialNumber(made.get(), serial.get()) != 1 || X509_set1_notBefore(made.get(), not_before.get()) != 1 ||
      X509_set1_notAfter(made.get(), not_after.get()) != 1 || X509_set_pubkey(made.get(), public_key) != 1) {
    return OpensslError("make a certificate");
  }
  TERSE_RETURN_IF_ERROR(SetSubject(X509_get_subject_name(made.get()), common_name));
  return made;
}

absl::Status Sign(X509* certificate, X509* issuer, EVP_PKEY* issuer_key) {
  ERR_clear_error();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
      X509_sign(certificate, issuer_key, EVP_sha256()) > 0) {
    return absl::OkStatus();
  }
  return OpensslError("sign a certificate");
}

// A client's certificate can never pass for a coordinator, nor a coordinator's for a client. A relay is both.
const char* Purposes(Role role) {
  if (!Serves(role)) return "clientAuth";
  return Calls(role) ? "serverAuth,clientAuth" : "serverAuth";
}

absl::Status AddRevocation(const Revocation& revocation, X509_CRL* list) {
  TERSE_ASSIGN_OR_RETURN(const TimePtr time, ToAsn1(revocation.time));
  ERR_clear_error();
  BIGNUM* raw = nullptr;
  const bool read = BN_hex2bn(&raw, revocation.serial.c_str()) > 0;
  const BignumPtr number(raw);
  const IntegerPtr serial(read ? BN_to_ASN1_INTEGER(number.get(), nullptr) : nullptr);
  std::unique_ptr<X509_REVOKED, OpensslFree<X509_REVOKED_free>> entry(X509_REVOKED_new());
  if (serial == nullptr || entry == nullptr || X509_REVOKED_set_serialNumber(entry.get(), serial.get()) != 1 ||
      X509_REVOKED_set_revocationDate(entry.get(), time.get()) != 1 || X509_CRL_add0_revoked(list, entry.get()) != 1) {
    return OpensslError("write an entry of a revocation list");
  }
  entry.release();
  return absl::OkStatus();
}

absl::Status CopyRevocations(X509_CRL* from, X509_CRL* to) {
  STACK_OF(X509_REVOKED)* const entries = X509_CRL_get_REVOKED(from);
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    std::unique_ptr<X509_REVOKED, OpensslFree<X509_REVOKED_free>> entry(
        X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i)));
    if (entry == nullptr || X509_CRL_add0_revoked(to, entry.get()) != 1) {
      return OpensslError("copy an entry of a revocation list");
    }
    entry.release();
  }
  return absl::OkStatus();
}

// RFC 5280, 5.2.3: so that of two lists the newer can be told.
absl::Status AddNumber(X509_CRL* previous, X509_CRL* list) {
  int64_t number = 0;
  if (previous != nullptr) {
    const IntegerPtr old(static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(previous, NID_crl_number, nullptr, nullptr)));
    if (old == nullptr || ASN1_INTEGER_get_int64(&number, old.get()) != 1) {
      ERR_clear_error();
      return absl::DataLossError("the revocation list has no number; restore it from a backup");
    }
  }
  const IntegerPtr next(ASN1_INTEGER_new());
  if (next == nullptr || ASN1_INTEGER_set_int64(next.get(), number + 1) != 1 ||
      X509_CRL_add1_ext_i2d(list, NID_crl_number, next.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return OpensslError("number a revocation list");
  }
  return absl::OkStatus();
}

absl::Status AddAuthorityKey(X509* authority, X509_CRL* list) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, authority, nullptr, nullptr, list, 0);
  const std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always"));
  if (extension == nullptr || X509_CRL_add_ext(list, extension.get(), -1) != 1) {
    return OpensslError("name the authority of a revocation list");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CertificatePtr> MakeAuthorityCertificate(const std::string& name, const Validity& validity,
                                                        EVP_PKEY* key) {
  TERSE_ASSIGN_OR_RETURN(CertificatePtr made, NewCertificate(absl::StrCat("terse authority ", name), key, validity));
  X509* const self = made.get();
  TERSE_RETURN_IF_ERROR(AddExtension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  TERSE_RETURN_IF_ERROR(AddExtension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign"));
  TERSE_RETURN_IF_ERROR(AddExtension(self, self, NID_subject_key_identifier, "hash"));
  TERSE_RETURN_IF_ERROR(Sign(self, self, key));
  return made;
}

absl::StatusOr<CertificatePtr> MakeCertificate(const CertificateRequest& request, EVP_PKEY* public_key,
                                               const Validity& validity, X509* authority, EVP_PKEY* authority_key) {
  TERSE_ASSIGN_OR_RETURN(CertificatePtr made, NewCertificate(CommonName(request.identity), public_key, validity));
  X509* const certificate = made.get();
  TERSE_RETURN_IF_ERROR(AddExtension(certificate, authority, NID_basic_constraints, "critical,CA:FALSE"));
  TERSE_RETURN_IF_ERROR(AddExtension(certificate, authority, NID_key_usage, "critical,digitalSignature"));
  TERSE_RETURN_IF_ERROR(AddExtension(certificate, authority, NID_ext_key_usage, Purposes(request.identity.role)));
  TERSE_RETURN_IF_ERROR(AddExtension(certificate, authority, NID_subject_key_identifier, "hash"));
  TERSE_RETURN_IF_ERROR(AddExtension(certificate, authority, NID_authority_key_identifier, "keyid:always"));
  TERSE_ASSIGN_OR_RETURN(const GeneralNamesPtr names, MakeAlternativeNames(request));
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return OpensslError("write the names of a certificate");
  }
  TERSE_RETURN_IF_ERROR(Sign(certificate, authority, authority_key));
  return made;
}

absl::StatusOr<CrlPtr> MakeRevocationList(X509_CRL* previous, const std::vector<Revocation>& added, absl::Time now,
                                          X509* authority, EVP_PKEY* authority_key) {
  TERSE_ASSIGN_OR_RETURN(const TimePtr issued, ToAsn1(now));
  ERR_clear_error();
  CrlPtr list(X509_CRL_new());
  if (list == nullptr || X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) != 1 ||
      X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(authority)) != 1 ||
      X509_CRL_set1_lastUpdate(list.get(), issued.get()) != 1 ||
      X509_CRL_set1_nextUpdate(list.get(), X509_get0_notAfter(authority)) != 1) {
    return OpensslError("make a revocation list");
  }
  if (previous != nullptr) TERSE_RETURN_IF_ERROR(CopyRevocations(previous, list.get()));
  for (const Revocation& revocation : added) TERSE_RETURN_IF_ERROR(AddRevocation(revocation, list.get()));
  TERSE_RETURN_IF_ERROR(AddAuthorityKey(authority, list.get()));
  TERSE_RETURN_IF_ERROR(AddNumber(previous, list.get()));
  if (X509_CRL_sort(list.get()) != 1 || X509_CRL_sign(list.get(), authority_key, EVP_sha256()) <= 0) {
    return OpensslError("sign a revocation list");
  }
  return list;
}

}  // namespace terse
