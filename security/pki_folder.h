// Writing TLS folders (security/tls_directory.h) without harming what is in them.
#ifndef TERSE_SECURITY_PKI_FOLDER_H_
#define TERSE_SECURITY_PKI_FOLDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "security/certificate.h"

namespace terse {

// Files are replaced atomically and belong to the folder's owner. Statuses are FileSystem's, each naming the file, and
// those named below.
class PkiFolder {
 public:
  explicit PkiFolder(std::string path) : path_(std::move(path)) {}

  // Makes the folder when it is not there.
  absl::Status Prepare() const;

  // A file's contents; nullopt when there is none. INVALID_ARGUMENT when it has more than kMaxPemBytes.
  absl::StatusOr<absl::optional<std::string>> Read(absl::string_view name) const;

  // The folder's key. With `renew` NOT_FOUND when there is none, otherwise a new one, which is not written yet, and
  // ALREADY_EXISTS when there is one.
  absl::StatusOr<std::string> Key(bool renew) const;

  // FAILED_PRECONDITION when the folder trusts another authority.
  absl::Status CheckAuthority(absl::string_view authority_pem) const;

  // The certificate in the folder; nullopt when there is none. FAILED_PRECONDITION when it is somebody else's.
  absl::StatusOr<absl::optional<CertificateFacts>> CertificateOf(const Identity& identity) const;

  // Appends the file's path to `written`.
  absl::Status Write(const std::string& name, absl::string_view bytes, std::vector<std::string>* written) const;

  const std::string& path() const { return path_; }
  std::string PathOf(absl::string_view name) const;

 private:
  const std::string path_;
};

}  // namespace terse

#endif  // TERSE_SECURITY_PKI_FOLDER_H_
