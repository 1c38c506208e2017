// The TLS folder of a running coordinator or relay, with the contents of its last whole state.
#ifndef TERSE_SECURITY_LIVE_TLS_DIRECTORY_H_
#define TERSE_SECURITY_LIVE_TLS_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/clock.h"
#include "security/tls_directory.h"

namespace terse {

// Files that are half-written, empty or do not belong together change nothing. Thread-safe.
class LiveTlsDirectory {
 public:
  // The folder's certificate is of `role`, one that serves, now and whenever it is renewed. Statuses of
  // OpenTlsDirectory and ReadRevocations. `clock` must outlive the object.
  static absl::StatusOr<std::shared_ptr<LiveTlsDirectory>> Open(const std::string& path, Role role, Clock* clock);

  // Reads the folder again and takes the parts that are good. Returns the statuses of Open for the others, which stay
  // as they were; FAILED_PRECONDITION for a list of the same authority that lacks a revocation that is in force. With
  // another authority its list is taken as it is: certificates of the one before are good for nothing.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts the changes of what Files returns, from 1.
  int64_t generation() const ABSL_LOCKS_EXCLUDED(mutex_);
  TlsDirectory Files() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts the authorities of the folder, from 1. All peers of connections that were made while it is 1 have shown a
  // certificate of the first one.
  int64_t authorities() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks, as CheckIssuedBy, that the authority in force issued the certificate.
  absl::Status CheckIssued(absl::string_view certificate_pem) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsRevoked(const std::string& serial) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of certificates that the list in force revokes.
  int64_t revocations() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when the list in force was issued.
  absl::Time RevocationsIssued() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  LiveTlsDirectory(TlsDirectory files, Role role, RevocationList revocations, Clock* clock);
  absl::Status RefreshFiles() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefreshRevocations() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  const Role role_;
  Clock* const clock_;

  mutable absl::Mutex mutex_;
  TlsDirectory files_ ABSL_GUARDED_BY(mutex_);
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t authorities_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t list_authority_ ABSL_GUARDED_BY(mutex_) = 1;  // of which the list in force is, by that number
  RevocationList revocations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_SECURITY_LIVE_TLS_DIRECTORY_H_
