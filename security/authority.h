// A small certificate authority in a folder, for one fleet: `tersectl pki`. docs/SECURITY.md describes its files.
#ifndef TERSE_SECURITY_AUTHORITY_H_
#define TERSE_SECURITY_AUTHORITY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/clock.h"
#include "security/certificate.h"

namespace terse {

struct IssuedCertificate {
  CertificateFacts facts;
  std::string key_hash;  // of its public key, as RequestKeyHash
  absl::optional<absl::Time> revoked;
};

// An authority's certificates that were read and checked before, by serial: for callers that list them again and again.
using KnownCertificates = absl::flat_hash_map<std::string, IssuedCertificate>;

// The time that Open and Create wait for another command, or the enrolment desk, that works in the folder.
inline constexpr absl::Duration kAuthorityPatience = absl::Seconds(10);

// Not thread-safe; holds the lock on its folder while it lives, so that of two commands at once one waits for the
// other. A command that has waited for `patience` is refused (FAILED_PRECONDITION). Files that root writes into another
// user's folder belong to that user. Statuses are FileSystem's and those named below.
class Authority {
 public:
  // Makes the folder, or takes an empty one and makes it private, with a new key and a certificate of its own that ends
  // `lifetime` from now. `name` is as CheckClientName allows. ALREADY_EXISTS when there is an authority;
  // FAILED_PRECONDITION when there is something else; INVALID_ARGUMENT for a bad name or lifetime. `clock` must outlive
  // the authority; nullptr: the system's.
  static absl::StatusOr<std::unique_ptr<Authority>> Create(const std::string& directory, const std::string& name,
                                                           absl::Duration lifetime, Clock* clock = nullptr,
                                                           absl::Duration patience = kAuthorityPatience);
  // NOT_FOUND when there is none, with how to make it; DATA_LOSS when its files do not belong together.
  static absl::StatusOr<std::unique_ptr<Authority>> Open(const std::string& directory, Clock* clock = nullptr,
                                                         absl::Duration patience = kAuthorityPatience);
  ~Authority();

  const std::string& directory() const;
  absl::Time Now() const;
  const std::string& certificate() const;  // PEM
  absl::Time not_after() const;
  // The current revocation list, PEM; it lists every certificate that was revoked, with its time.
  absl::StatusOr<std::string> RevocationListPem() const;

  // Signs what a request asks for, from kBackdating ago (security/signing.h) until `lifetime` from now, and records it
  // before it returns. PERMISSION_DENIED and INVALID_ARGUMENT as of ReadRequest, the latter also for a lifetime that is
  // not positive; FAILED_PRECONDITION when it would outlast the authority's, or when a certificate of the same key was
  // revoked; DATA_LOSS when the record of a revoked one is missing or is none.
  absl::StatusOr<std::string> Issue(absl::string_view request_pem, absl::Duration lifetime);
  // Revokes by serial, or every certificate of a name, of whatever role, that is neither expired nor revoked. Returns
  // those that it revoked. NOT_FOUND when there is none, RESOURCE_EXHAUSTED when the list would be longer than
  // kMaxPemBytes. The new list is on disk when it returns.
  absl::StatusOr<std::vector<CertificateFacts>> Revoke(const std::string& serial_or_name);
  // Returns all certificates, sorted by the second in which they were issued, then by serial. DATA_LOSS naming a file
  // that this authority did not sign. Files of `known` are not read again, and those that are get into it.
  absl::StatusOr<std::vector<IssuedCertificate>> List(KnownCertificates* known = nullptr) const;
  // A certificate that it issued, PEM. NOT_FOUND, and DATA_LOSS as of List.
  absl::StatusOr<std::string> CertificatePem(const std::string& serial) const;

 private:
  class Impl;
  explicit Authority(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace terse

#endif  // TERSE_SECURITY_AUTHORITY_H_
