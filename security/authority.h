// A small certificate authority in a folder, for one fleet: `tersectl pki`. docs/SECURITY.md describes its files.
#ifndef TERSE_SECURITY_AUTHORITY_H_
#define TERSE_SECURITY_AUTHORITY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/file_system.h"
#include "security/certificate.h"

namespace terse {

struct IssuedCertificate {
  CertificateFacts facts;
  absl::optional<absl::Time> revoked;
};

// Not thread-safe; holds the lock on its folder while it lives, so that two commands at once are refused
// (FAILED_PRECONDITION). Statuses are FileSystem's and those named below.
class Authority {
 public:
  // Makes the folder with a new key and a certificate of its own. ALREADY_EXISTS when there is an authority.
  static absl::StatusOr<std::unique_ptr<Authority>> Create(const std::string& directory, const std::string& name,
                                                           absl::Duration lifetime);
  // NOT_FOUND when there is none, with how to make it; DATA_LOSS when its files do not belong together.
  static absl::StatusOr<std::unique_ptr<Authority>> Open(const std::string& directory);

  const std::string& certificate() const;  // PEM
  // The current revocation list, PEM; it lists every certificate that was revoked, with its time.
  absl::StatusOr<std::string> RevocationListPem() const;

  // Signs what a request asks for and records it before it returns. INVALID_ARGUMENT for a bad request or a
  // coordinator without a host; FAILED_PRECONDITION when the lifetime would outlast the authority's.
  absl::StatusOr<std::string> Issue(absl::string_view request_pem, absl::Duration lifetime);
  // Revokes by serial, or every valid certificate of a name. Returns those that it revoked. NOT_FOUND when there is
  // none. The new list is on disk when it returns.
  absl::StatusOr<std::vector<CertificateFacts>> Revoke(const std::string& serial_or_name);
  // In the order in which they were issued.
  absl::StatusOr<std::vector<IssuedCertificate>> List() const;

 private:
  class Impl;
  explicit Authority(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;

 public:
  ~Authority();
};

}  // namespace terse

#endif  // TERSE_SECURITY_AUTHORITY_H_
