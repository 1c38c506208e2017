// OpenSSL's objects with their owners, PEM in and out, and its errors as statuses. For the sources of security/ only.
#ifndef TERSE_SECURITY_OPENSSL_TYPES_H_
#define TERSE_SECURITY_OPENSSL_TYPES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace terse {

// Frees an object of OpenSSL's with its own function.
template <auto free_function>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    free_function(object);
  }
};

inline void FreeExtensions(STACK_OF(X509_EXTENSION) * extensions) {
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
}

using BioPtr = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslFree<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, OpensslFree<X509_REQ_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, OpensslFree<X509_CRL_free>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), OpensslFree<FreeExtensions>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, OpensslFree<ASN1_INTEGER_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, OpensslFree<ASN1_TIME_free>>;
using BignumPtr = std::unique_ptr<BIGNUM, OpensslFree<BN_free>>;

// INTERNAL with OpenSSL's own reason, for what fails only without memory or randomness. Empties OpenSSL's error queue,
// as every function here does: gRPC has its own errors in it.
absl::Status OpensslError(absl::string_view action);

// The first object of its kind in `pem`. INVALID_ARGUMENT when there is none, naming `what`, or more than kMaxPemBytes.
absl::StatusOr<CertificatePtr> ParseCertificate(absl::string_view pem, absl::string_view what);
absl::StatusOr<RequestPtr> ParseRequest(absl::string_view pem);
absl::StatusOr<CrlPtr> ParseRevocationList(absl::string_view pem);
// A key with a password is refused, and nobody is asked for it.
absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem);

absl::StatusOr<std::string> ToPem(const X509& certificate);
absl::StatusOr<std::string> ToPem(const X509_REQ& request);
absl::StatusOr<std::string> ToPem(const X509_CRL& list);

// SHA-256, in hexadecimal digits.
absl::StatusOr<std::string> Sha256Text(absl::string_view bytes);
// Returns the hash of a public key, as RequestKeyHash.
absl::StatusOr<std::string> KeyHash(EVP_PKEY* public_key);

// Whole seconds. INVALID_ARGUMENT for a time that is written wrongly.
absl::StatusOr<absl::Time> FromAsn1(const ASN1_TIME* time);
absl::StatusOr<TimePtr> ToAsn1(absl::Time time);

// Returns a serial number, as CertificateFacts::serial. INVALID_ARGUMENT unless it is positive and of at most 20 bytes.
absl::StatusOr<std::string> SerialText(const ASN1_INTEGER* serial);

}  // namespace terse

#endif  // TERSE_SECURITY_OPENSSL_TYPES_H_
