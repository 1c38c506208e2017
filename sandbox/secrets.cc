#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sandbox/sandbox.h"

namespace terse {

absl::Status CheckOutOfReach(const std::string& data, const std::vector<std::string>& secrets, absl::string_view reader,
                             absl::string_view remedy) {
  if (data.empty()) return absl::OkStatus();
  std::error_code ignored;  // a path that is not there yet stays as it is written
  const auto resolve = [&](const std::string& path) {
    return (std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored) / "").string();
  };
  const std::string folder = resolve(data);
  for (const std::string& secret : secrets) {
    if (!secret.empty() && absl::StartsWith(resolve(secret), folder)) {
      return absl::FailedPreconditionError(absl::StrCat("'", secret, "' is in --data ", data, ", which ", reader,
                                                        " reads; keep it elsewhere, or ", remedy));
    }
  }
  return absl::OkStatus();
}

}  // namespace terse
