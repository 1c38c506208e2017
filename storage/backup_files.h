// The directory of a backup (RunStore::Backup), whatever the run is copied from. Internal to storage/.
#ifndef TERSE_STORAGE_BACKUP_FILES_H_
#define TERSE_STORAGE_BACKUP_FILES_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/file_system.h"

namespace terse {

// Makes the directory, which must be missing or empty, and its folder of checkpoints, and calls `copy`, which fills it.
// When that fails, its files are removed. FAILED_PRECONDITION when the directory holds files; otherwise the statuses of
// FileSystem and of `copy`.
absl::Status MakeBackup(FileSystem& files, const std::string& directory, absl::FunctionRef<absl::Status()> copy);

}  // namespace terse

#endif  // TERSE_STORAGE_BACKUP_FILES_H_
