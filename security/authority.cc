#include "security/authority.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/file_system.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "security/openssl_types.h"
#include "security/private_files.h"
#include "security/signing.h"

namespace terse {
namespace {

constexpr char kCertificate[] = "ca.crt";  // written last: an authority is there when this is
constexpr char kKey[] = "ca.key";
constexpr char kList[] = "crl.pem";
constexpr char kIssued[] = "issued";
constexpr char kLock[] = "lock";
constexpr char kIssuedSuffix[] = ".crt";  // of the files in kIssued
constexpr absl::Duration kLockPause = absl::Milliseconds(5);

absl::StatusOr<std::string> ReadPem(const std::string& path) { return PosixFiles().Read(path, kMaxPemBytes); }

absl::Status Damaged(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(path, ": ", why, "; restore the authority's folder from a backup"));
}

Clock* OrSystemClock(Clock* clock) {
  static auto* const system = new SystemClock;
  return clock == nullptr ? system : clock;
}

// A time that X.509 can hold, a year of four digits.
absl::StatusOr<absl::Time> EndOf(absl::Time begin, absl::Duration lifetime) {
  const absl::Time last = absl::FromCivil(absl::CivilSecond(9999, 12, 31, 23, 59, 59), absl::UTCTimeZone());
  if (lifetime > absl::ZeroDuration() && lifetime <= last - begin) return begin + lifetime;
  return absl::InvalidArgumentError("a certificate's lifetime must be above zero and end before the year 10000");
}

// An authority that died while it was made left files without which there is no certificate, and none was issued.
absl::Status CheckVacant(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFiles().List(directory));
  if (absl::c_linear_search(names, kCertificate)) {
    return absl::AlreadyExistsError(absl::StrCat(directory, " holds an authority already; name another folder"));
  }
  for (const std::string& name : names) {
    const absl::string_view base = absl::StripSuffix(name, kTemporarySuffix);
    if (base == kCertificate || base == kKey || base == kList || name == kIssued || name == kLock) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " holds other things, such as ", name, "; name a folder that is empty or not there"));
  }
  if (!absl::c_linear_search(names, kIssued)) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> issued, PosixFiles().List(FilePath(directory, kIssued)));
  if (issued.empty()) return absl::OkStatus();
  return Damaged(directory, "it holds certificates that an authority issued, and no ca.crt");
}

// As the folder's owner, who must be able to lock it too. Commands hold the lock for some milliseconds.
absl::StatusOr<std::unique_ptr<DirectoryLock>> LockFolder(const std::string& directory, absl::Duration patience) {
  const AsOwner owner(directory);
  TERSE_RETURN_IF_ERROR(owner.status());
  const absl::Time until = absl::Now() + patience;
  while (true) {
    absl::StatusOr<std::unique_ptr<DirectoryLock>> lock = PosixFiles().Lock(directory);
    if (!absl::IsFailedPrecondition(lock.status())) return lock;
    if (absl::Now() >= until) {
      return absl::FailedPreconditionError(absl::StrCat(directory, ": another command has been at work there for ",
                                                        absl::FormatDuration(patience),
                                                        "; try again, or end that one"));
    }
    absl::SleepFor(kLockPause);
  }
}

absl::Status PrepareFolder(const std::string& directory) {
  const AsOwner owner(directory);
  TERSE_RETURN_IF_ERROR(owner.status());
  if (chmod(directory.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory, " private"));
  }
  return PosixFiles().MakeDirectory(FilePath(directory, kIssued));
}

absl::StatusOr<std::string> SerialOf(const X509* certificate) {
  return SerialText(X509_get0_serialNumber(certificate));
}

absl::Status WriteList(const std::string& directory, const X509_CRL& list) {
  TERSE_ASSIGN_OR_RETURN(const std::string pem, ToPem(list));
  if (pem.size() > static_cast<size_t>(kMaxPemBytes)) {
    return absl::ResourceExhaustedError("the revocation list would be longer than anybody reads; make a new authority");
  }
  return ReplacePrivateFile(directory, kList, pem);
}

// One file of kIssued.
struct Record {
  CertificatePtr certificate;
  CertificateFacts facts;
};

// Serials as openssl prints them too: in capitals, with colons, with leading zeros.
std::string PlainSerial(absl::string_view text) {
  const std::string digits = absl::AsciiStrToLower(absl::StrReplaceAll(text, {{":", ""}}));
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

class Authority::Impl {
 public:
  Impl(std::string directory, Clock* clock) : directory_(std::move(directory)), clock_(OrSystemClock(clock)) {}

  absl::Status Create(const std::string& name, absl::Duration lifetime, absl::Duration patience);
  absl::Status Open(absl::Duration patience);
  absl::StatusOr<std::string> Issue(absl::string_view request_pem, absl::Duration lifetime);
  absl::StatusOr<std::vector<CertificateFacts>> Revoke(const std::string& serial_or_name);
  absl::StatusOr<std::vector<IssuedCertificate>> List(KnownCertificates* known) const;
  absl::StatusOr<std::string> CertificatePem(const std::string& serial) const;
  absl::StatusOr<std::string> RevocationListPem() const { return ToPem(*list_); }

  const std::string& directory() const { return directory_; }
  absl::Time Now() const { return absl::FromUnixMicros(clock_->NowMicros()); }
  const std::string& pem() const { return pem_; }
  absl::Time not_after() const { return not_after_; }

 private:
  absl::Status TakeCertificate(CertificatePtr certificate);
  absl::StatusOr<Record> ReadIssued(const std::string& name) const;
  absl::Status CheckNotRevoked(EVP_PKEY* key) const;
  absl::StatusOr<absl::flat_hash_map<std::string, absl::Time>> Revocations() const;

  const std::string directory_;
  Clock* const clock_;
  std::unique_ptr<DirectoryLock> lock_;
  KeyPtr key_;
  CertificatePtr certificate_;
  CrlPtr list_;
  std::string pem_;
  absl::Time not_before_, not_after_;
};

absl::Status Authority::Impl::TakeCertificate(CertificatePtr certificate) {
  certificate_ = std::move(certificate);
  TERSE_ASSIGN_OR_RETURN(pem_, ToPem(*certificate_));
  TERSE_ASSIGN_OR_RETURN(not_before_, FromAsn1(X509_get0_notBefore(certificate_.get())));
  TERSE_ASSIGN_OR_RETURN(not_after_, FromAsn1(X509_get0_notAfter(certificate_.get())));
  return absl::OkStatus();
}

absl::Status Authority::Impl::Create(const std::string& name, absl::Duration lifetime, absl::Duration patience) {
  TERSE_RETURN_IF_ERROR(Annotate(CheckClientName(name), "the authority's name"));
  const absl::Time now = Now();
  TERSE_ASSIGN_OR_RETURN(const absl::Time end, EndOf(now, lifetime));
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory_));
  TERSE_RETURN_IF_ERROR(CheckVacant(directory_));
  TERSE_ASSIGN_OR_RETURN(lock_, LockFolder(directory_, patience));
  TERSE_RETURN_IF_ERROR(CheckVacant(directory_));  // another may have made one until we had the lock
  TERSE_RETURN_IF_ERROR(PrepareFolder(directory_));
  TERSE_ASSIGN_OR_RETURN(const std::string key_pem, MakeKey());
  TERSE_ASSIGN_OR_RETURN(key_, ParseKey(key_pem));
  TERSE_ASSIGN_OR_RETURN(CertificatePtr made, MakeAuthorityCertificate(name, {now - kBackdating, end}, key_.get()));
  TERSE_RETURN_IF_ERROR(TakeCertificate(std::move(made)));
  TERSE_ASSIGN_OR_RETURN(list_, MakeRevocationList(nullptr, {}, now, certificate_.get(), key_.get()));
  TERSE_RETURN_IF_ERROR(ReplacePrivateFile(directory_, kKey, key_pem));
  TERSE_RETURN_IF_ERROR(WriteList(directory_, *list_));
  return ReplacePrivateFile(directory_, kCertificate, pem_);
}

absl::Status Authority::Impl::Open(absl::Duration patience) {
  const std::string certificate_path = FilePath(directory_, kCertificate);
  absl::StatusOr<std::string> pem = ReadPem(certificate_path);
  if (absl::IsNotFound(pem.status())) {
    return absl::NotFoundError(absl::StrCat("there is no authority in ", directory_,
                                            "; name its folder with --pki, or make one with `tersectl pki init`"));
  }
  TERSE_RETURN_IF_ERROR(pem.status());
  TERSE_ASSIGN_OR_RETURN(lock_, LockFolder(directory_, patience));
  absl::StatusOr<CertificatePtr> certificate = ParseCertificate(*pem, "a certificate");
  if (!certificate.ok()) return Damaged(certificate_path, certificate.status().message());
  TERSE_RETURN_IF_ERROR(TakeCertificate(*std::move(certificate)));
  const std::string key_path = FilePath(directory_, kKey), list_path = FilePath(directory_, kList);
  const absl::StatusOr<std::string> key_pem = ReadPem(key_path), list_pem = ReadPem(list_path);
  if (absl::IsNotFound(key_pem.status())) return Damaged(key_path, "it is missing");
  if (absl::IsNotFound(list_pem.status())) return Damaged(list_path, "it is missing");
  TERSE_RETURN_IF_ERROR(key_pem.status());
  TERSE_RETURN_IF_ERROR(list_pem.status());
  const absl::Status pair = CheckKeyPair(pem_, *key_pem);
  if (!pair.ok()) return Damaged(key_path, pair.message());
  const absl::Status list = ReadRevocationList(*list_pem, pem_).status();
  if (!list.ok()) return Damaged(list_path, list.message());
  TERSE_ASSIGN_OR_RETURN(key_, ParseKey(*key_pem));
  TERSE_ASSIGN_OR_RETURN(list_, ParseRevocationList(*list_pem));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Authority::Impl::Issue(absl::string_view request_pem, absl::Duration lifetime) {
  TERSE_ASSIGN_OR_RETURN(const CertificateRequest asked, ReadRequest(request_pem));
  TERSE_ASSIGN_OR_RETURN(const RequestPtr request, ParseRequest(request_pem));
  EVP_PKEY* const public_key = X509_REQ_get0_pubkey(request.get());
  TERSE_RETURN_IF_ERROR(CheckNotRevoked(public_key));
  const absl::Time now = Now();
  TERSE_ASSIGN_OR_RETURN(const absl::Time end, EndOf(now, lifetime));
  if (end > not_after_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate would outlast its authority, which ends on ",
                     absl::FormatTime("%Y-%m-%d", not_after_, absl::UTCTimeZone()),
                     "; give fewer --days, or make a new authority with `tersectl pki init`"));
  }
  const Validity validity{std::max(now - kBackdating, not_before_), end};
  TERSE_ASSIGN_OR_RETURN(const CertificatePtr made,
                         MakeCertificate(asked, public_key, validity, certificate_.get(), key_.get()));
  TERSE_ASSIGN_OR_RETURN(const std::string serial, SerialOf(made.get()));
  TERSE_ASSIGN_OR_RETURN(std::string pem, ToPem(*made));
  TERSE_RETURN_IF_ERROR(ReplacePrivateFile(FilePath(directory_, kIssued), absl::StrCat(serial, kIssuedSuffix), pem));
  return pem;
}

absl::StatusOr<Record> Authority::Impl::ReadIssued(const std::string& name) const {
  const std::string path = FilePath(FilePath(directory_, kIssued), name);
  TERSE_ASSIGN_OR_RETURN(const std::string pem, ReadPem(path));
  absl::StatusOr<CertificateFacts> facts = ReadCertificate(pem);
  if (!facts.ok()) return Damaged(path, facts.status().message());
  TERSE_ASSIGN_OR_RETURN(CertificatePtr certificate, ParseCertificate(pem, path));
  ERR_clear_error();
  const bool ours = X509_verify(certificate.get(), key_.get()) == 1;
  ERR_clear_error();
  if (!ours) return Damaged(path, "this authority did not sign it");
  if (absl::StrCat(facts->serial, kIssuedSuffix) != name) return Damaged(path, "its name is not its serial number");
  return Record{std::move(certificate), *std::move(facts)};
}

// To whoever has a revoked key, a certificate for it would give back what was taken.
absl::Status Authority::Impl::CheckNotRevoked(EVP_PKEY* key) const {
  TERSE_ASSIGN_OR_RETURN(const auto revoked, Revocations());
  for (const auto& [serial, time] : revoked) {
    const std::string name = absl::StrCat(serial, kIssuedSuffix);
    const absl::StatusOr<Record> record = ReadIssued(name);
    if (absl::IsNotFound(record.status())) {
      return Damaged(FilePath(FilePath(directory_, kIssued), name),
                     "it is missing, and is that of a revoked certificate");
    }
    TERSE_RETURN_IF_ERROR(record.status());
    const bool same = EVP_PKEY_eq(X509_get0_pubkey(record->certificate.get()), key) == 1;
    ERR_clear_error();
    if (!same) continue;
    const Identity& holder = record->facts.identity;
    return absl::FailedPreconditionError(
        absl::StrCat("certificate ", serial, " of ", RoleName(holder.role), " '", holder.name,
                     "', which has this key, was revoked; make a new key in another folder, without --renew"));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::flat_hash_map<std::string, absl::Time>> Authority::Impl::Revocations() const {
  absl::flat_hash_map<std::string, absl::Time> times;
  STACK_OF(X509_REVOKED)* const entries = X509_CRL_get_REVOKED(list_.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    const X509_REVOKED* const entry = sk_X509_REVOKED_value(entries, i);
    TERSE_ASSIGN_OR_RETURN(const std::string serial, SerialText(X509_REVOKED_get0_serialNumber(entry)));
    TERSE_ASSIGN_OR_RETURN(times[serial], FromAsn1(X509_REVOKED_get0_revocationDate(entry)));
  }
  return times;
}

absl::StatusOr<std::vector<IssuedCertificate>> Authority::Impl::List(KnownCertificates* known) const {
  KnownCertificates read;
  if (known == nullptr) known = &read;
  TERSE_ASSIGN_OR_RETURN(const auto revoked, Revocations());
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFiles().List(FilePath(directory_, kIssued)));
  std::vector<IssuedCertificate> issued;
  for (const std::string& name : names) {
    absl::string_view serial = name;
    if (!absl::ConsumeSuffix(&serial, kIssuedSuffix)) continue;
    const auto [one, is_new] = known->try_emplace(serial);
    if (is_new) {
      TERSE_ASSIGN_OR_RETURN(Record record, ReadIssued(name));
      TERSE_ASSIGN_OR_RETURN(one->second.key_hash, KeyHash(X509_get0_pubkey(record.certificate.get())));
      one->second.facts = std::move(record.facts);
    }
    issued.push_back(one->second);
    if (const auto found = revoked.find(serial); found != revoked.end()) issued.back().revoked = found->second;
  }
  absl::c_sort(issued, [](const IssuedCertificate& a, const IssuedCertificate& b) {
    return std::tie(a.facts.not_before, a.facts.serial) < std::tie(b.facts.not_before, b.facts.serial);
  });
  return issued;
}

absl::StatusOr<std::string> Authority::Impl::CertificatePem(const std::string& serial) const {
  TERSE_ASSIGN_OR_RETURN(const Record record, ReadIssued(absl::StrCat(serial, kIssuedSuffix)));
  return ToPem(*record.certificate);
}

absl::StatusOr<std::vector<CertificateFacts>> Authority::Impl::Revoke(const std::string& serial_or_name) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<IssuedCertificate> issued, List(nullptr));
  const absl::Time now = Now();
  const std::string serial = PlainSerial(serial_or_name);
  std::vector<CertificateFacts> chosen;
  std::vector<Revocation> added;
  int64_t known = 0;
  for (const IssuedCertificate& one : issued) {
    const bool by_name = one.facts.identity.name == serial_or_name;
    if (one.facts.serial != serial && !by_name) continue;
    ++known;
    if (one.revoked.has_value() || (by_name && one.facts.not_after < now)) continue;
    chosen.push_back(one.facts);
    added.push_back({one.facts.serial, now});
  }
  if (chosen.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no certificate of '", serial_or_name, "' to revoke (", known,
                                            " of that serial or name are expired or revoked already); `tersectl pki "
                                            "list` shows all"));
  }
  TERSE_ASSIGN_OR_RETURN(CrlPtr list, MakeRevocationList(list_.get(), added, now, certificate_.get(), key_.get()));
  TERSE_RETURN_IF_ERROR(WriteList(directory_, *list));
  list_ = std::move(list);
  return chosen;
}

Authority::Authority(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Authority::~Authority() = default;

absl::StatusOr<std::unique_ptr<Authority>> Authority::Create(const std::string& directory, const std::string& name,
                                                             absl::Duration lifetime, Clock* clock,
                                                             absl::Duration patience) {
  auto impl = std::make_unique<Impl>(directory, clock);
  TERSE_RETURN_IF_ERROR(impl->Create(name, lifetime, patience));
  return absl::WrapUnique(new Authority(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<Authority>> Authority::Open(const std::string& directory, Clock* clock,
                                                           absl::Duration patience) {
  auto impl = std::make_unique<Impl>(directory, clock);
  TERSE_RETURN_IF_ERROR(impl->Open(patience));
  return absl::WrapUnique(new Authority(std::move(impl)));
}

const std::string& Authority::directory() const { return impl_->directory(); }
absl::Time Authority::Now() const { return impl_->Now(); }
const std::string& Authority::certificate() const { return impl_->pem(); }
absl::Time Authority::not_after() const { return impl_->not_after(); }
absl::StatusOr<std::string> Authority::RevocationListPem() const { return impl_->RevocationListPem(); }

absl::StatusOr<std::string> Authority::Issue(absl::string_view request_pem, absl::Duration lifetime) {
  return impl_->Issue(request_pem, lifetime);
}

absl::StatusOr<std::vector<CertificateFacts>> Authority::Revoke(const std::string& serial_or_name) {
  return impl_->Revoke(serial_or_name);
}

absl::StatusOr<std::vector<IssuedCertificate>> Authority::List(KnownCertificates* known) const {
  return impl_->List(known);
}

absl::StatusOr<std::string> Authority::CertificatePem(const std::string& serial) const {
  return impl_->CertificatePem(serial);
}

}  // namespace terse
