// Backups in a place for objects (objects/object_store.h). A backup NAME is the files of its directory (backup.h) as
// NAME/FILE, and NAME/backup.json, which is stored last and lists them: what has none is no backup. Format:
//   {"format": 1, "files": [{"name": "run.sqlite", "bytes": 4096, "sha256": "..."}, ...]}
#ifndef TERSE_TERSECTL_BACKUP_OBJECTS_H_
#define TERSE_TERSECTL_BACKUP_OBJECTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tersectl/admin_client.h"
#include "tersectl/backup.h"

namespace terse {

// Acts as SaveBackup for `address`, s3://BUCKET/.../NAME. The files lie in the folder for temporary files meanwhile.
// ALREADY_EXISTS when there is a backup of that name; what an upload left that did not come to its end is replaced.
absl::StatusOr<BackupResult> UploadBackup(AdminClient& client, const std::string& address);

// Fetches the backup into `directory`, which must not exist. NOT_FOUND when there is none; DATA_LOSS when it is not
// what its backup.json says.
absl::Status DownloadBackup(const std::string& address, const std::string& directory);

}  // namespace terse

#endif  // TERSE_TERSECTL_BACKUP_OBJECTS_H_
