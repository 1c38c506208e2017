#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "security/certificate.h"
#include "security/openssl_types.h"
#include "security/signing.h"
#include "security/x509_names.h"

namespace terse {
namespace {

absl::Status BadRequest(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the certificate request cannot be used: ", why, "; `tersectl pki request` makes one that can be"));
}

absl::Status AddAlternativeNames(const CertificateRequest& request, X509_REQ* made) {
  TERSE_ASSIGN_OR_RETURN(const GeneralNamesPtr names, MakeAlternativeNames(request));
  ERR_clear_error();
  STACK_OF(X509_EXTENSION)* raw = nullptr;
  const bool encoded = X509V3_add1_i2d(&raw, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1;
  const ExtensionsPtr extensions(raw);
  if (encoded && X509_REQ_add_extensions(made, raw) == 1) return absl::OkStatus();
  return OpensslError("write the names of a request");
}

// The one extension that a request has.
absl::StatusOr<CertificateRequest> ReadNames(X509_REQ* request) {
  ERR_clear_error();
  const ExtensionsPtr extensions(X509_REQ_get_extensions(request));
  ERR_clear_error();
  if (extensions == nullptr || sk_X509_EXTENSION_num(extensions.get()) != 1 || X509_REQ_get_attr_count(request) != 1) {
    return BadRequest("it asks for something else than its alternative names");
  }
  const GeneralNamesPtr names(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  ERR_clear_error();
  if (names == nullptr) return BadRequest("it has no usable alternative names, and so no identity");
  absl::StatusOr<AlternativeNames> alternatives = ReadAlternativeNames(*names);
  if (!alternatives.ok()) return BadRequest(alternatives.status().message());
  if (alternatives->others) return BadRequest("it has names that are neither URI nor host");
  return std::move(alternatives->request);
}

}  // namespace

absl::Status CheckP256(EVP_PKEY* key) {
  char group[64] = "";
  int explicit_parameters = 0;
  ERR_clear_error();
  const bool p256 =
      key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC &&
      EVP_PKEY_get_group_name(key, group, sizeof(group), nullptr) == 1 &&
      absl::string_view(group) == SN_X9_62_prime256v1 &&
      EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS, &explicit_parameters) == 1 &&
      explicit_parameters == 0;
  ERR_clear_error();
  return p256 ? absl::OkStatus() : absl::InvalidArgumentError("its key is none of the curve P-256");
}

absl::StatusOr<std::string> MakeRequest(const CertificateRequest& request, absl::string_view key_pem) {
  TERSE_RETURN_IF_ERROR(CheckCertificateRequest(request));
  TERSE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(key_pem));
  if (const absl::Status p256 = CheckP256(key.get()); !p256.ok()) return BadRequest(p256.message());
  ERR_clear_error();
  const RequestPtr made(X509_REQ_new());
  if (made == nullptr || X509_REQ_set_version(made.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(made.get(), key.get()) != 1) {
    return OpensslError("make a certificate request");
  }
  TERSE_RETURN_IF_ERROR(SetSubject(X509_REQ_get_subject_name(made.get()), CommonName(request.identity)));
  TERSE_RETURN_IF_ERROR(AddAlternativeNames(request, made.get()));
  if (X509_REQ_sign(made.get(), key.get(), EVP_sha256()) <= 0) return OpensslError("sign a certificate request");
  return ToPem(*made);
}

absl::StatusOr<CertificateRequest> ReadRequest(absl::string_view request_pem) {
  TERSE_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (const absl::Status p256 = CheckP256(key); !p256.ok()) return BadRequest(p256.message());
  if (X509_REQ_get_signature_nid(request.get()) != NID_ecdsa_with_SHA256) {
    return BadRequest("it is signed with something else than ECDSA and SHA-256");
  }
  ERR_clear_error();
  const bool good = X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!good) {
    return absl::PermissionDeniedError(
        "the certificate request is not signed by its own key: it was changed on its way or is not its sender's; "
        "refuse it, and make it again where the key is");
  }
  TERSE_ASSIGN_OR_RETURN(CertificateRequest result, ReadNames(request.get()));
  if (const absl::Status rules = CheckCertificateRequest(result); !rules.ok()) return BadRequest(rules.message());
  return result;
}

absl::Status CheckRequestKey(absl::string_view request_pem, absl::string_view key_pem) {
  TERSE_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  TERSE_ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(key_pem));
  ERR_clear_error();
  const bool belong = X509_REQ_check_private_key(request.get(), key.get()) == 1;
  ERR_clear_error();
  if (belong) return absl::OkStatus();
  return absl::FailedPreconditionError("the private key is not that of the certificate request");
}

absl::StatusOr<std::string> RequestKeyHash(absl::string_view request_pem) {
  TERSE_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  return KeyHash(X509_REQ_get0_pubkey(request.get()));
}

}  // namespace terse
