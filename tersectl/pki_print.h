// The output that the commands about certificates have in common.
#ifndef TERSE_TERSECTL_PKI_PRINT_H_
#define TERSE_TERSECTL_PKI_PRINT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "security/certificate.h"
#include "tersectl/commands.h"

namespace terse {

absl::Duration Days(int64_t days);
// "3 days", "5h 03m"; "-" when nothing is left.
std::string LeftText(absl::Duration left);
// "client 'berlin-1'".
std::string WhoText(const Identity& identity);
std::string FactsText(const CertificateFacts& facts);
nlohmann::ordered_json FactsJson(const CertificateFacts& facts);
void PrintWritten(const std::vector<std::string>& written, const Terminal& terminal);
// Prints the certificate's facts, the files that were written, and the next step.
void PrintFacts(const CommandOptions& options, const CertificateFacts& facts, const std::vector<std::string>& written,
                const std::string& next, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_PKI_PRINT_H_
