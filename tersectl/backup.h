// `tersectl backup` and `tersectl restore`: a run as a directory of its own.
#ifndef TERSE_TERSECTL_BACKUP_H_
#define TERSE_TERSECTL_BACKUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/run_store.h"
#include "tersectl/admin_client.h"

namespace terse {

// Whether a backup may have a file of this name, relative to its directory. Names come from the network.
bool IsBackupFile(absl::string_view name);

struct BackupResult {
  int64_t files = 0;
  int64_t bytes = 0;
};

// Fetches the run's files into `directory`, which must not exist: they are written and synced in DIRECTORY.partial,
// which gets its name once the stream's hash is right. ALREADY_EXISTS; DATA_LOSS when the stream is not what
// admin.proto describes; the coordinator's errors and those of the file system.
absl::StatusOr<BackupResult> SaveBackup(AdminClient& client, const std::string& directory);

struct RestoreRequest {
  std::string backup;           // a directory that SaveBackup made
  std::string state_directory;  // the coordinator's; made when it is not there
  std::string run;              // under which name; empty: the backup's own
  bool force = false;           // replace a run of that name
};

struct RestoreResult {
  std::string run;
  std::string directory;
  std::string replaced;  // where the run that was there is now; empty when there was none
  int64_t version = 0;   // of the restored head
};

// Copies the backup into STATE/runs/RUN and makes it a run of its own (StartNewLineage). The coordinator of that state
// directory must not run: FAILED_PRECONDITION. ALREADY_EXISTS when there is a run of that name and `force` is not set;
// NOT_FOUND when `backup` holds no run, or not its TorchScript file; DATA_LOSS when it is damaged; those of the file
// system. Nothing has changed after an error.
absl::StatusOr<RestoreResult> RestoreBackup(const RestoreRequest& request);

// Whether a run's directory has the TorchScript file that its configuration names, where it names one: no coordinator
// serves it otherwise. NOT_FOUND, DATA_LOSS; those of the file system.
absl::Status CheckModule(const std::string& directory, const RunRecord& run);

}  // namespace terse

#endif  // TERSE_TERSECTL_BACKUP_H_
