#include "learning/datasets/data_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr size_t kNamedFiles = 8;  // in messages

bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// The file `path`, or the one with .gz after it, or empty.
std::string PlainOrGzip(const std::string& path) {
  if (IsFile(path)) return path;
  if (IsFile(path + ".gz")) return path + ".gz";
  return "";
}

std::string FileOrFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? path : PlainOrGzip(path);
}

absl::Status CheckFolder(const std::string& data_dir) {
  std::error_code error;
  if (std::filesystem::is_directory(data_dir, error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("there is no folder ", data_dir, ", which --data names; make it, or name another one"));
}

// "the folder DIR holds a.csv, b.csv": the folder nearest to `path` that is there.
std::string Neighbours(const std::string& path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  while (!std::filesystem::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name[0] != '.') names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  const size_t more = names.size() > kNamedFiles ? names.size() - kNamedFiles : 0;
  names.resize(names.size() - more);
  return absl::StrCat("the folder ", folder.string(), " holds ", names.empty() ? "nothing" : absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// Why there is nothing for `field` of the run at `path`; empty when there is.
std::string Absence(absl::string_view field, const std::string& name, const std::string& path) {
  if (name.empty()) return absl::StrCat(field, " is not set");
  if (!FileOrFolder(path).empty()) return "";
  return absl::StrCat(field, " is '", name, "', and there is neither ", path, " nor ", path, ".gz; ", Neighbours(path));
}

// The path of what `field` of the run names; empty for an empty name.
absl::StatusOr<std::string> NamedPath(const std::string& data_dir, absl::string_view field, const std::string& name) {
  if (name.empty()) return std::string();
  const std::vector<absl::string_view> steps = absl::StrSplit(name, '/');
  if (name[0] == '/' || name.find('\0') != std::string::npos ||
      std::find(steps.begin(), steps.end(), "..") != steps.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is '", name, "', which leads out of the data directory; name a file or a folder inside it"));
  }
  return absl::StrCat(data_dir, "/", name);
}

}  // namespace

absl::StatusOr<DataParts> FindDataParts(const DataSpec& spec, const std::string& data_dir) {
  if (data_dir.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data set '", spec.name, "' needs files and there is no data directory; give one with --data"));
  }
  TERSE_RETURN_IF_ERROR(CheckFolder(data_dir));
  TERSE_ASSIGN_OR_RETURN(const std::string train, NamedPath(data_dir, "data.train", spec.train));
  TERSE_ASSIGN_OR_RETURN(const std::string test, NamedPath(data_dir, "data.test", spec.test));
  if (train.empty() && test.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("data set '", spec.name,
                                                   "' has no fixed files; set data.train or data.test, or both, to "
                                                   "names in the data directory"));
  }
  DataParts parts;
  if (!train.empty()) parts.train = FileOrFolder(train);
  if (!test.empty()) parts.test = FileOrFolder(test);
  parts.no_train = Absence("data.train", spec.train, train);
  parts.no_test = Absence("data.test", spec.test, test);
  if (!parts.train.empty() || !parts.test.empty()) return parts;
  return absl::NotFoundError(absl::StrCat(parts.no_train, "; ", parts.no_test, "; check the names and --data"));
}

absl::StatusOr<std::string> FindDataFile(const std::string& data_dir, absl::Span<const absl::string_view> folders,
                                         absl::string_view name, absl::string_view remedy) {
  TERSE_RETURN_IF_ERROR(CheckFolder(data_dir));
  std::vector<std::string> places = {data_dir};
  for (const absl::string_view folder : folders) places.push_back(absl::StrCat(data_dir, "/", folder));
  for (const std::string& place : places) {
    std::string path = PlainOrGzip(absl::StrCat(place, "/", name));
    if (!path.empty()) return path;
  }
  return absl::NotFoundError(
      absl::StrCat("no ", name, " or ", name, ".gz in ", absl::StrJoin(places, " or "), "; ", remedy));
}

absl::StatusOr<std::vector<std::string>> ListDataFiles(const std::string& path, absl::string_view ending) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name[0] == '.') continue;
    if (absl::EndsWith(name, ending) || absl::EndsWith(name, absl::StrCat(ending, ".gz"))) {
      files.push_back(it->path().string());
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(path, ": cannot be listed (", error.message(), ")"));
  std::sort(files.begin(), files.end());
  if (!files.empty()) return files;
  return absl::NotFoundError(absl::StrCat(path, ": the folder holds no file that ends with ", ending,
                                          "; put the data there or name another folder"));
}

}  // namespace terse
