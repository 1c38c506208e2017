#include "security/live_tls_directory.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::shared_ptr<LiveTlsDirectory>> LiveTlsDirectory::Open(const std::string& path, Role role,
                                                                         Clock* clock) {
  TERSE_ASSIGN_OR_RETURN(TlsDirectory files, OpenTlsDirectory(path, {role}, absl::FromUnixMicros(clock->NowMicros())));
  TERSE_ASSIGN_OR_RETURN(RevocationList revocations, ReadRevocations(path));
  return std::shared_ptr<LiveTlsDirectory>(
      absl::WrapUnique(new LiveTlsDirectory(std::move(files), role, std::move(revocations), clock)));
}

LiveTlsDirectory::LiveTlsDirectory(TlsDirectory files, Role role, RevocationList revocations, Clock* clock)
    : path_(files.path), role_(role), clock_(clock), files_(std::move(files)), revocations_(std::move(revocations)) {}

absl::Status LiveTlsDirectory::Refresh() {
  const absl::Status files = RefreshFiles();
  const absl::Status revocations = RefreshRevocations();
  return files.ok() ? revocations : files;
}

absl::Status LiveTlsDirectory::RefreshFiles() {
  TERSE_ASSIGN_OR_RETURN(TlsDirectory files,
                         OpenTlsDirectory(path_, {role_}, absl::FromUnixMicros(clock_->NowMicros())));
  absl::MutexLock lock(&mutex_);
  if (files.authority_pem == files_.authority_pem && files.certificate_pem == files_.certificate_pem &&
      files.key_pem == files_.key_pem) {
    return absl::OkStatus();
  }
  if (files.authority_pem != files_.authority_pem) ++authorities_;
  files_ = std::move(files);
  ++generation_;
  return absl::OkStatus();
}

absl::Status LiveTlsDirectory::RefreshRevocations() {
  TERSE_ASSIGN_OR_RETURN(RevocationList list, ReadRevocations(path_));
  absl::MutexLock lock(&mutex_);
  for (const std::string& serial : revocations_.serials) {
    if (list_authority_ != authorities_ || list.serials.contains(serial)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path_, "/", kRevocationFile, " lacks the revocation of ", serial,
                     ", so it is older than the one in force; copy the authority's newest one"));
  }
  revocations_ = std::move(list);
  list_authority_ = authorities_;
  return absl::OkStatus();
}

int64_t LiveTlsDirectory::authorities() const {
  absl::ReaderMutexLock lock(&mutex_);
  return authorities_;
}

absl::Status LiveTlsDirectory::CheckIssued(absl::string_view certificate_pem) const {
  return CheckIssuedBy(certificate_pem, Files().authority_pem);
}

int64_t LiveTlsDirectory::generation() const {
  absl::ReaderMutexLock lock(&mutex_);
  return generation_;
}

TlsDirectory LiveTlsDirectory::Files() const {
  absl::ReaderMutexLock lock(&mutex_);
  return files_;
}

bool LiveTlsDirectory::IsRevoked(const std::string& serial) const {
  absl::ReaderMutexLock lock(&mutex_);
  return revocations_.serials.contains(serial);
}

int64_t LiveTlsDirectory::revocations() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<int64_t>(revocations_.serials.size());
}

absl::Time LiveTlsDirectory::RevocationsIssued() const {
  absl::ReaderMutexLock lock(&mutex_);
  return revocations_.issued;
}

}  // namespace terse
