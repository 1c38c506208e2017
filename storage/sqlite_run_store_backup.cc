// Copies of a run on SQLite, and what makes a copy a run of its own.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/backup_files.h"
#include "storage/checkpoint_files.h"
#include "storage/message_rows.h"
#include "storage/module_file.h"
#include "storage/sqlite_run_store.h"
#include "storage/state_directory.h"

namespace terse {

absl::Status SqliteRunStore::Backup(const std::string& directory) {
  return Watch(MakeBackup(files_, directory, [&] { return CopyInto(directory); }));
}

absl::StatusOr<SqliteRunStore::Pinned> SqliteRunStore::Pin() {
  // Between the two no checkpoint is retired and no log pruned. Later changes of the run concern neither.
  absl::MutexLock lock(&checkpoint_mutex_);
  Pinned pinned{{}, messages().Hold(), nullptr};
  TERSE_ASSIGN_OR_RETURN(pinned.checkpoint, NewestWholeCheckpoint());
  // A connection of its own, so that neither commits nor an administrator's queries wait.
  TERSE_ASSIGN_OR_RETURN(pinned.database, SqliteDb::Open(run_store_internal::DatabasePath(directory_),
                                                         SqliteDb::Mode::kReader, files_.SqliteVfs()));
  TERSE_RETURN_IF_ERROR(pinned.database->PinSnapshot());
  return pinned;
}

absl::Status SqliteRunStore::CopyInto(const std::string& directory) {
  TERSE_RETURN_IF_ERROR(CopyModule(files_, directory_, directory));
  TERSE_ASSIGN_OR_RETURN(Pinned pinned, Pin());
  const Checkpoint& checkpoint = pinned.checkpoint;
  TERSE_RETURN_IF_ERROR(CheckpointFiles(files_, directory).WriteFiles(checkpoint).status());
  TERSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqliteDb> copy,
      SqliteDb::Open(run_store_internal::DatabasePath(directory), SqliteDb::Mode::kWriter, files_.SqliteVfs()));
  TERSE_RETURN_IF_ERROR(copy->CopyFrom(*pinned.database));
  pinned.database.reset();
  TERSE_RETURN_IF_ERROR(copy->InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(copy->Prepare("DELETE FROM checkpoints WHERE version <> ?").Int(checkpoint.version).Run());
    return copy->Prepare("DELETE FROM server_states WHERE version <> ?").Int(checkpoint.version).Run();
  }));
  TERSE_ASSIGN_OR_RETURN(const SegmentEnds named, NamedSegments(*copy));
  TERSE_RETURN_IF_ERROR(CopySegments(files_, SegmentsDirectory(directory_), SegmentsDirectory(directory), named));
  TERSE_RETURN_IF_ERROR(copy->FlushLog());
  return files_.SyncDirectory(directory);
}

absl::Status StartNewLineage(const std::string& directory, FileSystem& files) {
  const absl::Status no_run = absl::NotFoundError(absl::StrCat(directory, " holds no run; name a backup's directory"));
  if (!HoldsRun(files, directory)) return no_run;
  TERSE_ASSIGN_OR_RETURN(const run_store_internal::OwnedDatabase owned,
                         run_store_internal::OpenDatabase(directory, files, RunStore::Depth::kRecent));
  return run_store_internal::BeginLineage(*owned.db, no_run);
}

}  // namespace terse
