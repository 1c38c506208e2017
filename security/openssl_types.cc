#include "security/openssl_types.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "security/certificate.h"

namespace terse {
namespace {

constexpr int kMaxSerialBytes = 20;  // RFC 5280, 4.1.2.2

// In place of OpenSSL's, which would ask the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

void FreeText(char* text) { OPENSSL_free(text); }

template <typename Pointer, typename Read>
absl::StatusOr<Pointer> Parse(absl::string_view pem, absl::string_view what, Read read) {
  if (pem.size() > static_cast<size_t>(kMaxPemBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", pem.size(), " bytes, and more than ", kMaxPemBytes, " are not read"));
  }
  ERR_clear_error();
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (bio == nullptr) return OpensslError("read from memory");
  Pointer parsed(read(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (parsed == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("this is not ", what, " in PEM, or a damaged one"));
  }
  return parsed;
}

template <typename T, typename Write>
absl::StatusOr<std::string> Print(const T& object, Write write) {
  ERR_clear_error();
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get(), &object) != 1) return OpensslError("write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

absl::Status OpensslError(absl::string_view action) {
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, reason, sizeof(reason));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL could not ", action, ": ", reason));
}

absl::StatusOr<CertificatePtr> ParseCertificate(absl::string_view pem, absl::string_view what) {
  return Parse<CertificatePtr>(pem, what, PEM_read_bio_X509);
}

absl::StatusOr<RequestPtr> ParseRequest(absl::string_view pem) {
  return Parse<RequestPtr>(pem, "a certificate request", PEM_read_bio_X509_REQ);
}

absl::StatusOr<CrlPtr> ParseRevocationList(absl::string_view pem) {
  return Parse<CrlPtr>(pem, "a revocation list", PEM_read_bio_X509_CRL);
}

absl::StatusOr<KeyPtr> ParseKey(absl::string_view pem) {
  return Parse<KeyPtr>(pem, "a private key without a password", PEM_read_bio_PrivateKey);
}

absl::StatusOr<std::string> ToPem(const X509& certificate) { return Print(certificate, PEM_write_bio_X509); }
absl::StatusOr<std::string> ToPem(const X509_REQ& request) { return Print(request, PEM_write_bio_X509_REQ); }
absl::StatusOr<std::string> ToPem(const X509_CRL& list) { return Print(list, PEM_write_bio_X509_CRL); }

absl::StatusOr<absl::Time> FromAsn1(const ASN1_TIME* time) {
  std::tm parts = {};
  ERR_clear_error();
  const bool read = time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1;
  ERR_clear_error();
  if (!read) return absl::InvalidArgumentError("it has a time that cannot be read");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::StatusOr<TimePtr> ToAsn1(absl::Time time) {
  ERR_clear_error();
  TimePtr result(ASN1_TIME_set(nullptr, absl::ToTimeT(time)));
  if (result == nullptr) return OpensslError("write a time");
  return result;
}

absl::StatusOr<std::string> SerialText(const ASN1_INTEGER* serial) {
  ERR_clear_error();
  const BignumPtr number(ASN1_INTEGER_to_BN(serial, nullptr));
  if (number == nullptr) return OpensslError("read a serial number");
  if (BN_is_negative(number.get()) || BN_is_zero(number.get()) || BN_num_bytes(number.get()) > kMaxSerialBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has a serial number that is not positive or longer than ", kMaxSerialBytes, " bytes"));
  }
  const std::unique_ptr<char, OpensslFree<FreeText>> digits(BN_bn2hex(number.get()));
  if (digits == nullptr) return OpensslError("write a serial number");
  const std::string text = absl::AsciiStrToLower(digits.get());
  return text.substr(text.find_first_not_of('0'));
}

absl::StatusOr<std::string> Sha256Text(absl::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  ERR_clear_error();
  if (EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(&digest[0]), &size, EVP_sha256(),
                 nullptr) != 1) {
    return OpensslError("hash");
  }
  return absl::BytesToHexString(absl::string_view(digest).substr(0, size));
}

absl::StatusOr<std::string> KeyHash(EVP_PKEY* public_key) {
  unsigned char* der = nullptr;
  ERR_clear_error();
  const int size = public_key == nullptr ? -1 : i2d_PUBKEY(public_key, &der);
  if (size <= 0) {
    ERR_clear_error();
    return absl::InvalidArgumentError("its public key is unreadable");
  }
  const std::string bytes(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return Sha256Text(bytes);
}

}  // namespace terse
