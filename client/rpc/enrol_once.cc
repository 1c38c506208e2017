#include "client/rpc/enrol_once.h"

#include <limits.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/log_components.h"
#include "client/rpc/backoff.h"
#include "core/id128.h"
#include "core/log/log.h"
#include "core/status.h"
#include "security/enrolment.h"
#include "security/pki_folder.h"
#include "security/tls_directory.h"

namespace terse {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool MayAnswerLater(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::Status EnrolOnce(const DaemonOptions& options, const std::atomic<bool>* stop) {
  const std::string& folder = options.transport.tls_directory;
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::string> certificate, PkiFolder(folder).Read(kCertificateFile));
  if (certificate.has_value()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const Invitation invitation, ReadInvitationFile(options.invitation));
  const std::string name = options.name.empty() ? HostName() : options.name;
  Log(LogLevel::kDebug, kEnrolLog, {{}, 0, name}, absl::StrCat("asking ", invitation.address, " for a certificate"));
  Backoff backoff(absl::Seconds(options.first_backoff_seconds), Id128::Random().low);
  while (!stop->load()) {
    const absl::StatusOr<CertificateFacts> facts = Enrol(folder, invitation, name);
    if (facts.ok()) {
      Log(LogLevel::kInfo, kEnrolLog, {{}, 0, name},
          absl::StrCat("enrolled by ", invitation.address, "; the certificate in ", folder, " is valid until ",
                       absl::FormatTime("%Y-%m-%d", facts->not_after, absl::UTCTimeZone())));
      return absl::OkStatus();
    }
    if (!MayAnswerLater(facts.status())) return facts.status();
    const absl::Duration wait = backoff.Next();
    Log(LogLevel::kWarn, kEnrolLog, {{}, 0, name},
        absl::StrFormat("%s; trying again in %.1f s", facts.status().message(), absl::ToDoubleSeconds(wait)));
    SleepUnlessStopped(wait, *stop);
  }
  return absl::CancelledError("stopped");
}

}  // namespace terse
