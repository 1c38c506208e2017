#include "storage/state_directory.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {

bool IsNotServed(absl::string_view name) {
  return absl::EndsWith(name, kReplacedSuffix) || absl::EndsWith(name, kPartialSuffix) ||
         absl::EndsWith(name, kDeletedSuffix);
}

absl::Status CheckServedName(absl::string_view name) {
  if (!IsNotServed(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("name = '", name, "' ends with ", kPartialSuffix, " or ",
                                                 kReplacedSuffix, ", which marks directories that are not served; ",
                                                 "choose another name"));
}

std::string RunDirectory(const std::string& state_directory, const std::string& name) {
  return name.empty() ? state_directory : absl::StrCat(state_directory, "/runs/", name);
}

std::string UpstreamDirectory(const std::string& state_directory) { return FilePath(state_directory, "upstream"); }

bool HoldsRun(FileSystem& files, const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(directory);
  return names.ok() && std::binary_search(names->begin(), names->end(), kRunFile);
}

absl::StatusOr<std::vector<std::string>> ListRunNames(FileSystem& files, const std::string& state_directory) {
  absl::StatusOr<std::vector<std::string>> names = files.List(absl::StrCat(state_directory, "/runs"));
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names.status();
  const auto is_no_run = [&](const std::string& name) {
    return IsNotServed(name) || !HoldsRun(files, RunDirectory(state_directory, name));
  };
  names->erase(std::remove_if(names->begin(), names->end(), is_no_run), names->end());
  return names;
}

absl::StatusOr<std::vector<std::string>> DeletedDirectories(FileSystem& files, const std::string& state_directory) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(absl::StrCat(state_directory, "/runs"));
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  TERSE_RETURN_IF_ERROR(names.status());
  std::vector<std::string> directories;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, kDeletedSuffix)) directories.push_back(RunDirectory(state_directory, name));
  }
  return directories;
}

}  // namespace terse
