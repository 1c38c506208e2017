#include "storage/temporary_directory.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/id128.h"

namespace terse {

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

absl::StatusOr<std::string> NewTemporaryName(absl::string_view prefix) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("there is no temporary folder: ", error.message(), "; name one with TMPDIR"));
  }
  return absl::StrCat((folder / std::string(prefix)).string(), "-", Id128::Random().ToHex());
}

}  // namespace terse
