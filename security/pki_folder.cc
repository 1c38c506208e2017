#include "security/pki_folder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/private_files.h"
#include "security/tls_directory.h"

namespace terse {

std::string PkiFolder::PathOf(absl::string_view name) const { return FilePath(path_, name); }

absl::Status PkiFolder::Prepare() const { return PosixFiles().MakeDirectory(path_); }

absl::StatusOr<absl::optional<std::string>> PkiFolder::Read(absl::string_view name) const {
  const AsOwner owner(path_);
  if (absl::IsNotFound(owner.status())) return absl::nullopt;
  TERSE_RETURN_IF_ERROR(owner.status());
  absl::StatusOr<std::string> bytes = PosixFiles().Read(PathOf(name), kMaxPemBytes);
  if (absl::IsNotFound(bytes.status())) return absl::nullopt;
  if (absl::IsResourceExhausted(bytes.status())) return absl::InvalidArgumentError(bytes.status().message());
  TERSE_RETURN_IF_ERROR(bytes.status());
  return *std::move(bytes);
}

absl::StatusOr<std::string> PkiFolder::Key(bool renew) const {
  TERSE_ASSIGN_OR_RETURN(absl::optional<std::string> key, Read(kKeyFile));
  if (renew && !key.has_value()) {
    return absl::NotFoundError(absl::StrCat("there is no ", PathOf(kKeyFile), " to renew; leave --renew out"));
  }
  if (!renew && key.has_value()) {
    return absl::AlreadyExistsError(absl::StrCat(PathOf(kKeyFile),
                                                 " is there and is not overwritten; keep it with "
                                                 "--renew, or name another folder with --out"));
  }
  if (renew) return *std::move(key);
  return MakeKey();
}

absl::Status PkiFolder::CheckAuthority(absl::string_view authority_pem) const {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> authority, Read(kAuthorityFile));
  if (!authority.has_value() || *authority == authority_pem) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(PathOf(kAuthorityFile),
                   " is that of another authority; name its folder with --pki, or another "
                   "folder with --out"));
}

absl::StatusOr<absl::optional<CertificateFacts>> PkiFolder::CertificateOf(const Identity& identity) const {
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> certificate, Read(kCertificateFile));
  if (!certificate.has_value()) return absl::nullopt;
  absl::StatusOr<CertificateFacts> facts = ReadCertificate(*certificate);
  if (!facts.ok()) return Annotate(facts.status(), PathOf(kCertificateFile));
  if (!(facts->identity == identity)) {
    return absl::FailedPreconditionError(absl::StrCat(PathOf(kCertificateFile), " is that of ",
                                                      RoleName(facts->identity.role), " '", facts->identity.name,
                                                      "'; name another folder with --out"));
  }
  return *std::move(facts);
}

absl::Status PkiFolder::Write(const std::string& name, absl::string_view bytes,
                              std::vector<std::string>* written) const {
  TERSE_RETURN_IF_ERROR(ReplacePrivateFile(path_, name, bytes));
  written->push_back(PathOf(name));
  return absl::OkStatus();
}

}  // namespace terse
