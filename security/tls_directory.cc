#include "security/tls_directory.h"

#include <openssl/err.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/openssl_types.h"
#include "security/private_files.h"

namespace terse {
namespace {

using StorePtr = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;

absl::StatusOr<std::string> ReadTlsFile(const std::string& directory, absl::string_view name) {
  const std::string path = FilePath(directory, name);
  absl::StatusOr<std::string> bytes = PosixFiles().Read(path, kMaxPemBytes);
  if (absl::IsNotFound(bytes.status())) {
    return absl::NotFoundError(absl::StrCat("there is no ", path,
                                            "; `tersectl pki issue` or `tersectl pki sign` makes "
                                            "the files of a TLS folder"));
  }
  if (absl::IsResourceExhausted(bytes.status())) return absl::InvalidArgumentError(bytes.status().message());
  return bytes;
}

std::string Day(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone()); }

// Turns an error of OpenSSL's verification into a status with the reason and the remedy.
absl::Status Explain(int error, const std::string& directory, const CertificateFacts& facts) {
  const std::string certificate = FilePath(directory, kCertificateFile);
  switch (error) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::FailedPreconditionError(absl::StrCat(certificate, " or its authority is not valid yet (from ",
                                                        Day(facts.not_before), "); check this machine's clock"));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::FailedPreconditionError(absl::StrCat(certificate, " or its authority has expired (",
                                                        Day(facts.not_after),
                                                        "); renew it with `tersectl pki issue --renew`"));
    case X509_V_ERR_INVALID_PURPOSE:
      return absl::FailedPreconditionError(absl::StrCat(certificate, " may not be used by a ",
                                                        RoleName(facts.identity.role),
                                                        "; make it again with `tersectl pki issue`"));
    default:
      return absl::FailedPreconditionError(
          absl::StrCat(certificate, " is not signed by the authority of ", FilePath(directory, kAuthorityFile), " (",
                       X509_verify_cert_error_string(error), "); take both from the same authority"));
  }
}

// Checks the certificate for one of OpenSSL's purposes, as the other end of a connection will, at `now` or, without
// one, at any time.
absl::Status CheckSignedFor(int purpose, const TlsDirectory& directory, absl::optional<absl::Time> now) {
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr authority, ParseCertificate(directory.authority_pem, kAuthorityFile));
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                         ParseCertificate(directory.certificate_pem, kCertificateFile));
  ERR_clear_error();
  const StorePtr store(X509_STORE_new());
  const ContextPtr context(X509_STORE_CTX_new());
  if (store == nullptr || context == nullptr || X509_STORE_add_cert(store.get(), authority.get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr) != 1) {
    return OpensslError("prepare a verification");
  }
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  if (now.has_value()) {
    X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(*now));
  } else {
    X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
  }
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return good ? absl::OkStatus()
              : Explain(X509_STORE_CTX_get_error(context.get()), directory.path, directory.certificate);
}

// Checks the certificate for everything that its role does.
absl::Status CheckSigned(const TlsDirectory& directory, absl::optional<absl::Time> now) {
  const Role role = directory.certificate.identity.role;
  if (Serves(role)) TERSE_RETURN_IF_ERROR(CheckSignedFor(X509_PURPOSE_SSL_SERVER, directory, now));
  if (Calls(role)) TERSE_RETURN_IF_ERROR(CheckSignedFor(X509_PURPOSE_SSL_CLIENT, directory, now));
  return absl::OkStatus();
}

// gRPC would trust all of them, and the revocations of one alone are known.
absl::Status CheckOneAuthority(absl::string_view pem, const std::string& path) {
  constexpr absl::string_view kBegin = "-----BEGIN ";
  const size_t first = pem.find(kBegin);
  if (first == absl::string_view::npos || pem.find(kBegin, first + 1) == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " holds more than one certificate; leave that of one authority"));
}

// The files, each by itself.
absl::StatusOr<TlsDirectory> ReadFiles(const std::string& path) {
  TlsDirectory result;
  result.path = path;
  TERSE_ASSIGN_OR_RETURN(result.authority_pem, ReadTlsFile(path, kAuthorityFile));
  TERSE_ASSIGN_OR_RETURN(result.certificate_pem, ReadTlsFile(path, kCertificateFile));
  TERSE_ASSIGN_OR_RETURN(result.key_pem, ReadTlsFile(path, kKeyFile));
  const std::string authority_path = FilePath(path, kAuthorityFile);
  const absl::Status authority = ParseCertificate(result.authority_pem, "a certificate").status();
  TERSE_RETURN_IF_ERROR(Annotate(authority, authority_path));
  TERSE_RETURN_IF_ERROR(CheckOneAuthority(result.authority_pem, authority_path));
  absl::StatusOr<CertificateFacts> facts = ReadCertificate(result.certificate_pem);
  if (!facts.ok()) return Annotate(facts.status(), FilePath(path, kCertificateFile));
  result.certificate = *std::move(facts);
  TERSE_RETURN_IF_ERROR(Annotate(CheckKeyPair(result.certificate_pem, result.key_pem), FilePath(path, kKeyFile)));
  return result;
}

absl::Status WrongRole(const TlsDirectory& directory, const std::vector<Role>& roles) {
  const auto append = [](std::string* out, Role role) { absl::StrAppend(out, RoleName(role)); };
  return absl::FailedPreconditionError(absl::StrCat(
      FilePath(directory.path, kCertificateFile), " is that of ", RoleName(directory.certificate.identity.role), " '",
      directory.certificate.identity.name, "', and one of role ", absl::StrJoin(roles, " or ", append),
      " is needed here; name another folder"));
}

}  // namespace

absl::StatusOr<TlsDirectory> ReadTlsDirectory(const std::string& path, const std::vector<Role>& roles) {
  TERSE_ASSIGN_OR_RETURN(TlsDirectory directory, ReadFiles(path));
  TERSE_RETURN_IF_ERROR(CheckSigned(directory, absl::nullopt));
  if (!absl::c_linear_search(roles, directory.certificate.identity.role)) return WrongRole(directory, roles);
  return directory;
}

absl::StatusOr<TlsDirectory> OpenTlsDirectory(const std::string& path, const std::vector<Role>& roles, absl::Time now) {
  TERSE_ASSIGN_OR_RETURN(TlsDirectory directory, ReadTlsDirectory(path, roles));
  TERSE_RETURN_IF_ERROR(CheckSigned(directory, now));
  return directory;
}

absl::StatusOr<RevocationList> ReadRevocations(const std::string& path) {
  const std::string list_path = FilePath(path, kRevocationFile);
  const absl::StatusOr<std::string> list_pem = PosixFiles().Read(list_path, kMaxPemBytes);
  if (absl::IsNotFound(list_pem.status())) {
    return absl::NotFoundError(absl::StrCat("there is no ", list_path,
                                            ", without which revoked certificates would be good again; copy it from "
                                            "the authority's folder"));
  }
  if (absl::IsResourceExhausted(list_pem.status())) return absl::InvalidArgumentError(list_pem.status().message());
  TERSE_RETURN_IF_ERROR(list_pem.status());
  TERSE_ASSIGN_OR_RETURN(const std::string authority_pem, ReadTlsFile(path, kAuthorityFile));
  absl::StatusOr<RevocationList> list = ReadRevocationList(*list_pem, authority_pem);
  if (!list.ok()) return Annotate(list.status(), list_path);
  return list;
}

}  // namespace terse
