#include "storage/backup_files.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/checkpoint_files.h"
#include "storage/module_file.h"
#include "storage/segments.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

std::vector<std::string> FoldersOf(const std::string& directory) {
  return {CheckpointsDirectory(directory), SegmentsDirectory(directory)};
}

absl::Status ExpectNoFiles(FileSystem& files, const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(names.status());
  const std::vector<std::string> folders = FoldersOf(directory);
  for (const std::string& name : *names) {
    const std::string path = FilePath(directory, name);
    // Empty folders are what a backup that failed leaves.
    if (std::find(folders.begin(), folders.end(), path) != folders.end()) {
      TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> inside, files.List(path));
      if (inside.empty()) continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " holds files already; name a new or empty directory for the backup"));
  }
  return absl::OkStatus();
}

// Best effort: what is left only keeps the next backup from using the directory.
void RemoveCopy(FileSystem& files, const std::string& directory) {
  for (const char* const file : {kModuleFile, kStartFile}) {
    files.Remove(absl::StrCat(directory, "/", file)).IgnoreError();
  }
  for (const char* suffix : {"", "-wal", "-shm"}) {
    files.Remove(absl::StrCat(FilePath(directory, kRunFile), suffix)).IgnoreError();
  }
  for (const std::string& folder : FoldersOf(directory)) {
    const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
    if (!names.ok()) continue;
    for (const std::string& name : *names) files.Remove(FilePath(folder, name)).IgnoreError();
  }
}

}  // namespace

absl::Status MakeBackup(FileSystem& files, const std::string& directory, absl::FunctionRef<absl::Status()> copy) {
  TERSE_RETURN_IF_ERROR(ExpectNoFiles(files, directory));
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(CheckpointsDirectory(directory)));
  absl::Status status = copy();
  if (!status.ok()) RemoveCopy(files, directory);
  return status;
}

}  // namespace terse
