#include "learning/datasets/numpy.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status.h"
#include "learning/datasets/example_parts.h"
#include "learning/datasets/file_bytes.h"
#include "learning/datasets/npy.h"
#include "learning/datasets/zip.h"

namespace terse {
namespace {

using Names = std::vector<absl::string_view>;

absl::Status NoArray(const std::string& path, const Names& names, absl::string_view there) {
  return absl::NotFoundError(
      absl::StrCat(path, ": there is no array ", absl::StrJoin(names, " or "), there, "; save it under that name"));
}

absl::StatusOr<Column> ReadMember(const std::string& path, const ZipArchive& archive, const Names& names) {
  for (const absl::string_view name : names) {
    const std::string member = absl::StrCat(name, ".npy");
    if (!archive.Has(member)) continue;
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, archive.Read(member));
    return ReadNpy(file);
  }
  return NoArray(path, names, absl::StrCat("; it has ", absl::StrJoin(archive.Names(), ", ")));
}

absl::StatusOr<Column> ReadFile(const std::string& folder, const Names& names) {
  std::error_code error;
  for (const absl::string_view name : names) {
    const std::string path = absl::StrCat(folder, "/", name, ".npy");
    if (!std::filesystem::exists(path, error)) continue;
    TERSE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path));
    return ReadNpy(file);
  }
  return NoArray(folder, names, ".npy");
}

absl::StatusOr<Examples> ReadNumpyPart(const std::string& path) {
  const Names features = {"x", "features"}, targets = {"y", "targets"};
  Column x, y;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    TERSE_ASSIGN_OR_RETURN(x, ReadFile(path, features));
    TERSE_ASSIGN_OR_RETURN(y, ReadFile(path, targets));
  } else if (absl::EndsWith(path, ".npy")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a .npy file holds one array; name a folder with x.npy and y.npy, or an .npz file"));
  } else {
    TERSE_ASSIGN_OR_RETURN(FileBytes file, FileBytes::Open(path));
    TERSE_ASSIGN_OR_RETURN(const ZipArchive archive, ZipArchive::Open(std::move(file)));
    TERSE_ASSIGN_OR_RETURN(x, ReadMember(path, archive, features));
    TERSE_ASSIGN_OR_RETURN(y, ReadMember(path, archive, targets));
  }
  return PairExamples(std::move(x), std::move(y), path);
}

}  // namespace

absl::StatusOr<Dataset> LoadNumpy(const DataSpec& spec, const std::string& data_dir) {
  TERSE_ASSIGN_OR_RETURN(const DataParts parts, FindDataParts(spec, data_dir));
  return LoadExampleParts("NumPy arrays", parts, ReadNumpyPart);
}

}  // namespace terse
