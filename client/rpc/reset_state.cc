#include "client/rpc/reset_state.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/client_files.h"

namespace terse {

absl::StatusOr<RemovedState> RemoveClientState(FileSystem& files, const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<DirectoryLock> lock, files.Lock(directory));
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  RemovedState removed;
  for (const std::string& name : names) {
    if (!IsClientFile(name)) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    // A file that cannot be read any more goes as well.
    const absl::StatusOr<std::string> bytes = files.Read(path);
    if (bytes.ok()) removed.bytes += bytes->size();
    TERSE_RETURN_IF_ERROR(files.Remove(path));
    absl::StrAppend(&removed.names, removed.files == 0 ? "" : ", ", name);
    ++removed.files;
  }
  TERSE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  return removed;
}

}  // namespace terse
