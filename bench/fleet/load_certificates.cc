#include "bench/fleet/load_certificates.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "bench/fleet/load_process.h"
#include "core/file_system.h"
#include "core/status.h"
#include "security/authority.h"
#include "security/certificate.h"
#include "security/tls_directory.h"

namespace terse {
namespace {

constexpr absl::Duration kLifetime = absl::Hours(24);

// Without a sync: who loses these makes others.
absl::Status WriteFile(const std::string& folder, absl::string_view name, absl::string_view text) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, PosixFiles().Create(FilePath(folder, name)));
  return file->Append(text);
}

// An authority that several threads use.
class Issuer {
 public:
  explicit Issuer(std::unique_ptr<Authority> authority) : authority_(std::move(authority)) {}

  absl::Status IssueInto(const std::string& folder, const CertificateRequest& wanted) {
    TERSE_ASSIGN_OR_RETURN(const std::string key, MakeKey());
    TERSE_ASSIGN_OR_RETURN(const std::string request, MakeRequest(wanted, key));
    TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(folder));
    TERSE_RETURN_IF_ERROR(WriteFile(folder, kKeyFile, key));
    TERSE_RETURN_IF_ERROR(WriteFile(folder, kAuthorityFile, authority_->certificate()));
    absl::MutexLock lock(&mutex_);
    TERSE_ASSIGN_OR_RETURN(const std::string certificate, authority_->Issue(request, kLifetime));
    return WriteFile(folder, kCertificateFile, certificate);
  }

 private:
  absl::Mutex mutex_;
  const std::unique_ptr<Authority> authority_;
};

}  // namespace

std::string LoadRelayName(int64_t number) { return absl::StrCat("relay-", number); }

std::string ServerTlsFolder(const std::string& directory, const std::string& name) { return FilePath(directory, name); }

absl::Status MakeLoadCertificates(int64_t clients, int64_t relays, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Authority> authority,
                         Authority::Create(FilePath(directory, "authority"), "load", 2 * kLifetime));
  // Nothing is revoked; a server wants to be told that.
  TERSE_ASSIGN_OR_RETURN(const std::string revoked, authority->RevocationListPem());
  Issuer issuer(std::move(authority));
  const auto issue_to_server = [&](Role role, const std::string& name) -> absl::Status {
    const std::string folder = ServerTlsFolder(directory, name);
    TERSE_RETURN_IF_ERROR(issuer.IssueInto(folder, {{role, name}, {"127.0.0.1"}}));
    return WriteFile(folder, kRevocationFile, revoked);
  };
  TERSE_RETURN_IF_ERROR(issue_to_server(Role::kCoordinator, kLoadCoordinatorName));
  for (int64_t i = 0; i < relays; ++i) {
    TERSE_RETURN_IF_ERROR(issue_to_server(Role::kRelay, LoadRelayName(i)));
  }
  const int64_t threads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::vector<absl::Status> made(threads);
  std::vector<std::thread> makers;
  for (int64_t t = 0; t < threads; ++t) {
    makers.emplace_back([&, t] {
      for (int64_t i = t; i < clients && made[t].ok(); i += threads) {
        const std::string name = LoadClientName(i);
        made[t] = issuer.IssueInto(FilePath(directory, name), {{Role::kClient, name}, {}});
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  for (const absl::Status& status : made) TERSE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace terse
