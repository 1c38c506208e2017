#include "tersectl/doctor.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "core/version.h"
#include "security/tls_directory.h"
#include "tersectl/doctor_state.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr uint64_t kLittleDisk = 1'000'000'000;
constexpr uint64_t kHardlyAnyDisk = 100'000'000;
// Beyond this, times in tables mislead; beyond the other, certificates are refused: they begin five minutes early.
constexpr absl::Duration kClockWarning = absl::Seconds(2);
constexpr absl::Duration kClockFailure = absl::Minutes(5);
constexpr absl::Duration kRenewalTime = absl::Hours(14 * 24);

const char* HealthName(Health health) {
  switch (health) {
    case Health::kOk:
      return "ok";
    case Health::kWarning:
      return "warning";
    case Health::kFailure:
      return "failure";
  }
  return "";
}

std::string DayText(absl::Time time) { return TimeText(absl::ToUnixMicros(time)); }

// Which error and what to do are in one text here.
Finding Failed(const std::string& check, const absl::Status& status, const std::string& remedy) {
  return {check, Health::kFailure, std::string(status.message()), remedy};
}

Finding CheckKeyMode(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kKeyFile);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Failed("key", absl::ErrnoToStatus(errno, path), "see the TLS folder");
  const unsigned mode = info.st_mode & 0777;
  const std::string detail = absl::StrFormat("%s has mode %04o", path, mode);
  if ((mode & 077) == 0) return {"key", Health::kOk, detail, ""};
  return {"key", Health::kFailure, detail,
          absl::StrCat("others can read it: chmod 600 ", path, "; if they may have, make a new key (pki issue)")};
}

void ExamineRuns(const v1::RunsReply& reply, std::vector<Finding>* findings) {
  if (reply.runs().empty()) {
    findings->push_back({"runs", Health::kOk, "none yet", ""});
  }
  for (const v1::Run& run : reply.runs()) findings->push_back(CheckRun(run));
}

// The coordinator, as far as it answers.
void ExamineCoordinator(const DoctorOptions& options, std::vector<Finding>* findings) {
  const std::string& address = options.coordinator.address;
  absl::StatusOr<AdminClient> client = AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds));
  const absl::Time sent = absl::Now();
  const absl::StatusOr<v1::RunsReply> reply =
      client.ok() ? client->ListRuns() : absl::StatusOr<v1::RunsReply>(client.status());
  const absl::Time received = absl::Now();
  if (!reply.ok()) {
    findings->push_back(Failed("coordinator", reply.status(),
                               "start it, correct --admin, or give the certificate that it wants with --tls"));
    return;
  }
  findings->push_back({"coordinator", Health::kOk,
                       absl::StrCat(address, " answers after ", DurationText(absl::ToDoubleSeconds(received - sent))),
                       ""});
  const v1::Coordinator& coordinator = reply->coordinator();
  findings->push_back(CheckVersion(coordinator));
  // One of an earlier release says nothing about itself.
  if (coordinator.now_us() != 0) {
    findings->push_back(CheckClock(coordinator, sent, received));
    findings->push_back(CheckDisk(coordinator));
  }
  if (coordinator.has_certificate_until_us()) {
    findings->push_back(CheckEnd("coordinator's certificate", absl::FromUnixMicros(coordinator.certificate_until_us()),
                                 received, "renew it: tersectl pki issue coordinator NAME --renew --out DIR"));
  }
  if (!options.authority_directory.empty()) {
    const absl::StatusOr<RevocationList> list = ReadRevocations(options.authority_directory);
    findings->push_back(list.ok() ? CheckRevocations(coordinator, list->issued)
                                  : Failed("revocations", list.status(), "restore the authority's folder"));
  }
  ExamineRuns(*reply, findings);
}

void Print(const std::vector<Finding>& findings, bool json, const Terminal& terminal) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
      list.push_back({{"check", finding.check},
                      {"result", HealthName(finding.health)},
                      {"detail", finding.detail},
                      {"remedy", finding.remedy}});
    }
    PrintJson(list, terminal);
    return;
  }
  TextTable table({{"check"}, {"result"}, {"detail"}});
  for (const Finding& finding : findings) {
    table.AddRow({finding.check, HealthName(finding.health), finding.detail});
    if (!finding.remedy.empty()) table.AddRow({"", "", absl::StrCat("-> ", finding.remedy)});
  }
  *terminal.out << table.Render(terminal.color);
}

}  // namespace

void ExamineTls(const std::string& directory, std::vector<Finding>* findings) {
  const absl::StatusOr<TlsDirectory> files = ReadTlsDirectory(directory, AllRoles());
  if (!files.ok()) {
    findings->push_back(Failed("TLS folder", files.status(), "docs/SECURITY.md, \"Commands\""));
    return;
  }
  const CertificateFacts& facts = files->certificate;
  findings->push_back({"TLS folder", Health::kOk,
                       absl::StrCat(directory, ": ", RoleName(facts.identity.role), " ", facts.identity.name), ""});
  findings->push_back(CheckKeyMode(directory));
  const absl::Time now = absl::Now();
  if (facts.not_before > now) {
    findings->push_back({"certificate", Health::kFailure, absl::StrCat("it begins only at ", DayText(facts.not_before)),
                         "set this machine's clock"});
    return;
  }
  findings->push_back(CheckEnd("certificate", facts.not_after, now,
                               absl::StrCat("renew it: tersectl pki issue ", RoleName(facts.identity.role), " ",
                                            facts.identity.name, " --renew --out ", directory)));
  // The authority's own time, which only the whole check knows.
  const absl::Status whole = OpenTlsDirectory(directory, AllRoles(), now).status();
  if (!whole.ok() && facts.not_after > now) {
    findings->push_back(Failed("authority", whole, "make a new authority (docs/SECURITY.md)"));
  }
}

Finding CheckVersion(const v1::Coordinator& coordinator) {
  const std::string& theirs = coordinator.program_version();
  if (theirs == kVersion) return {"version", Health::kOk, absl::StrCat(theirs, ", as this tersectl"), ""};
  return {"version", Health::kWarning,
          absl::StrCat("the coordinator has ", theirs.empty() ? "an earlier version" : theirs, ", this tersectl ",
                       kVersion),
          "update the older of the two"};
}

Finding CheckClock(const v1::Coordinator& coordinator, absl::Time sent, absl::Time received) {
  const absl::Duration half = (received - sent) / 2;
  const absl::Duration off = absl::FromUnixMicros(coordinator.now_us()) - (sent + half);
  // The least difference, whenever within the call the coordinator looked at its clock.
  const absl::Duration least = absl::AbsDuration(off) - half;
  const std::string detail = absl::StrCat(
      "the coordinator's is ", DurationText(absl::ToDoubleSeconds(absl::AbsDuration(off))),
      off < absl::ZeroDuration() ? " behind" : " ahead", ", to within ", DurationText(absl::ToDoubleSeconds(half)));
  if (least <= kClockWarning) return {"clock", Health::kOk, detail, ""};
  return {"clock", least > kClockFailure ? Health::kFailure : Health::kWarning, detail,
          "set both clocks, with NTP for example: certificates have times"};
}

Finding CheckDisk(const v1::Coordinator& coordinator) {
  const std::string& directory = coordinator.state_directory();
  if (!coordinator.has_disk_free_bytes()) {
    return {"disk", Health::kWarning, absl::StrCat("the coordinator cannot tell how full that of ", directory, " is"),
            "look at it on its machine"};
  }
  const uint64_t free = coordinator.disk_free_bytes();
  const std::string detail =
      absl::StrCat(BytesText(free), " of ", BytesText(coordinator.disk_bytes()), " free for ", directory);
  if (free >= kLittleDisk) return {"disk", Health::kOk, detail, ""};
  return {"disk", free < kHardlyAnyDisk ? Health::kFailure : Health::kWarning, detail,
          "make room there; a full disk suspends the runs"};
}

Finding CheckRun(const v1::Run& run) {
  const std::string check = absl::StrCat("run ", run.name());
  if (run.serving()) return {check, Health::kOk, absl::StrCat(run.state(), ", ", run.phase()), ""};
  if (absl::StartsWith(run.phase(), "suspended")) {
    return {check, Health::kWarning, run.phase(), "make room on its disk or repair it; the run goes on by itself"};
  }
  return {check, Health::kFailure, run.phase(),
          "repair it or restore a backup (tersectl restore), then start the coordinator again"};
}

Finding CheckEnd(const std::string& check, absl::Time end, absl::Time now, const std::string& remedy) {
  const absl::Duration left = end - now;
  if (left <= absl::ZeroDuration()) {
    return {check, Health::kFailure, absl::StrCat("it has expired, at ", DayText(end)), remedy};
  }
  const std::string detail =
      absl::StrCat("valid until ", DayText(end), ", ", absl::ToInt64Hours(left) / 24, " more days");
  return left < kRenewalTime ? Finding{check, Health::kWarning, detail, remedy}
                             : Finding{check, Health::kOk, detail, ""};
}

Finding CheckRevocations(const v1::Coordinator& coordinator, absl::Time issued) {
  if (!coordinator.has_revocations_us()) {
    return {"revocations", Health::kOk, "the coordinator serves in cleartext and has no list", ""};
  }
  const absl::Time theirs = absl::FromUnixMicros(coordinator.revocations_us());
  if (theirs >= issued) {
    return {"revocations", Health::kOk, absl::StrCat("the coordinator has the list of ", DayText(theirs)), ""};
  }
  return {"revocations", Health::kFailure,
          absl::StrCat("the coordinator's list is of ", DayText(theirs), ", the authority's of ", DayText(issued)),
          "who was revoked meanwhile is let in: bring crl.pem to the coordinator's TLS folder"};
}

absl::Status Diagnose(const DoctorOptions& options, const Terminal& terminal) {
  std::vector<Finding> findings;
  if (const std::string& tls = options.coordinator.transport.tls_directory; !tls.empty()) ExamineTls(tls, &findings);
  if (!options.state_directory.empty()) {
    for (Finding& finding : ExamineState(options.state_directory, terminal)) findings.push_back(std::move(finding));
  } else {
    ExamineCoordinator(options, &findings);
  }
  Print(findings, options.json, terminal);
  const auto failed = std::count_if(findings.begin(), findings.end(),
                                    [](const Finding& finding) { return finding.health == Health::kFailure; });
  if (failed == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(failed, " of ", findings.size(), " checks failed"));
}

}  // namespace terse
