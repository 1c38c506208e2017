#include "tersectl/pki_print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"

namespace terse {

using Json = nlohmann::ordered_json;

absl::Duration Days(int64_t days) { return days * absl::Hours(24); }

std::string LeftText(absl::Duration left) {
  if (left <= absl::ZeroDuration()) return "-";
  const int64_t days = left / absl::Hours(24);
  return days > 1 ? absl::StrCat(days, " days") : DurationText(absl::ToDoubleSeconds(left));
}

std::string WhoText(const Identity& identity) {
  return absl::StrCat(RoleName(identity.role), " '", identity.name, "'");
}

std::string FactsText(const CertificateFacts& facts) {
  const std::string hosts = facts.hosts.empty() ? "" : absl::StrCat(", reached as ", absl::StrJoin(facts.hosts, ", "));
  return absl::StrCat(WhoText(facts.identity), hosts, ", serial ", facts.serial, ", valid until ",
                      TimeText(facts.not_after));
}

Json FactsJson(const CertificateFacts& facts) {
  return {{"role", std::string(RoleName(facts.identity.role))},
          {"name", facts.identity.name},
          {"serial", facts.serial},
          {"hosts", facts.hosts},
          {"issued_us", absl::ToUnixMicros(facts.not_before)},
          {"expires_us", absl::ToUnixMicros(facts.not_after)}};
}

void PrintWritten(const std::vector<std::string>& written, const Terminal& terminal) {
  *terminal.out << "written: " << absl::StrJoin(written, ", ") << "\n";
}

void PrintFacts(const CommandOptions& options, const CertificateFacts& facts, const std::vector<std::string>& written,
                const std::string& next, const Terminal& terminal) {
  if (options.json) {
    Json json = FactsJson(facts);
    json["files"] = written;
    return PrintJson(json, terminal);
  }
  *terminal.out << FactsText(facts) << "\n";
  PrintWritten(written, terminal);
  *terminal.out << next << "\n";
}

}  // namespace terse
