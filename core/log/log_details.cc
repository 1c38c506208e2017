#include "core/log/log_details.h"

#include <string>

#include "absl/strings/str_split.h"
#include "core/status_details.h"

namespace terse {

void LogDetails(absl::string_view component, const LogFields& fields, const absl::Status& status) {
  const std::string details = DetailsOf(status);
  for (const absl::string_view line : absl::StrSplit(details, '\n', absl::SkipWhitespace())) {
    Log(LogLevel::kDebug, component, fields, line);
  }
}

}  // namespace terse
