#include <openssl/err.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "security/certificate.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

constexpr size_t kPemLine = 64;
constexpr size_t kMaxSerialDigits = 40;

std::string ReadGolden(absl::string_view name) {
  std::ifstream file(InSource(absl::StrCat("tests/golden/", name)));
  Require(file.good(), "the golden files are where they were when this was built");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string InPem(absl::string_view label, absl::string_view der) {
  const std::string text = absl::Base64Escape(der);
  std::string pem = absl::StrCat("-----BEGIN ", label, "-----\n");
  for (size_t at = 0; at < text.size(); at += kPemLine) absl::StrAppend(&pem, text.substr(at, kPemLine), "\n");
  return absl::StrCat(pem, "-----END ", label, "-----\n");
}

void RequireReason(const absl::Status& status) {
  Require(absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status), "bytes are refused for what they are");
  Require(!status.message().empty(), "the status says what is wrong");
}

void RequireSerial(absl::string_view serial) {
  Require(!serial.empty() && serial.size() <= kMaxSerialDigits && serial[0] != '0', "a serial has one short form");
  Require(serial.find_first_not_of("0123456789abcdef") == absl::string_view::npos, "a serial is in lower case");
}

void RequireIdentity(const Identity& identity) {
  const absl::StatusOr<Identity> back = IdentityFromUri(ToUri(identity));
  Require(back.ok() && *back == identity, "an identity has a form that is read");
}

void CheckCertificate(absl::string_view pem) {
  const absl::StatusOr<CertificateFacts> facts = ReadCertificate(pem);
  if (!facts.ok()) return RequireReason(facts.status());
  RequireIdentity(facts->identity);
  RequireSerial(facts->serial);
}

void CheckRequest(absl::string_view pem) {
  const absl::StatusOr<CertificateRequest> request = ReadRequest(pem);
  if (!request.ok()) return RequireReason(request.status());
  RequireIdentity(request->identity);
}

void CheckRevocations(absl::string_view list, absl::string_view authority) {
  const auto revoked = ReadRevocationList(list, authority);
  if (!revoked.ok()) return RequireReason(revoked.status());
  for (const std::string& serial : revoked->serials) RequireSerial(serial);
}

}  // namespace

void FuzzCertificates(const char*, const uint8_t* data, size_t size) {
  static const auto* const authority = new std::string(ReadGolden("pki_authority.pem"));
  static const auto* const list = new std::string(ReadGolden("pki_crl.pem"));
  Input input(data, size);
  const uint8_t head = input.Byte();
  const std::string bytes(input.Rest());
  const auto pem = [&](absl::string_view label) { return (head & 1) != 0 ? InPem(label, bytes) : bytes; };
  switch (head / 2 % 4) {
    case 0:
      CheckCertificate(pem("CERTIFICATE"));
      break;
    case 1:
      CheckRequest(pem("CERTIFICATE REQUEST"));
      break;
    case 2:
      CheckRevocations(pem("X509 CRL"), *authority);
      break;
    default:
      CheckRevocations(*list, pem("CERTIFICATE"));
  }
  const absl::StatusOr<Identity> identity = IdentityFromUri(bytes);
  if (!identity.ok()) RequireReason(identity.status());
  if (identity.ok()) Require(ToUri(*identity) == bytes, "an identity has one form");
  Require(ERR_peek_error() == 0, "nothing is left in OpenSSL's queue of errors");
}

}  // namespace terse
