#include "storage/postgres_run_store.h"

#include <utility>

#include "core/fault.h"
#include "core/status.h"
#include "storage/backup_files.h"
#include "storage/checkpoint_files.h"
#include "storage/integrity.h"
#include "storage/module_file.h"
#include "storage/postgres_blobs.h"
#include "storage/postgres_schema.h"
#include "storage/run_copy.h"
#include "storage/schema.h"
#include "storage/segment_messages.h"
#include "storage/sqlite_db.h"
#include "storage/sqlite_run_store.h"

namespace terse {

absl::StatusOr<std::unique_ptr<RunStore>> PostgresRunStore::Open(const std::string& address, const std::string& schema,
                                                                 const std::string& directory, FileSystem& files,
                                                                 const MessageLimits& limits,
                                                                 const PostgresLease* lease) {
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(CheckpointsDirectory(directory)));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, files.Lock(directory));
  TERSE_FAILPOINT("coordinator.restart.locked");
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresDb> db, PostgresDb::Open(address, schema, PostgresDb::Mode::kWriter));
  TERSE_RETURN_IF_ERROR(MigratePostgres(*db));
  Parts parts;
  TERSE_ASSIGN_OR_RETURN(parts.epoch, run_store_internal::TakeOver(*db, [&]() -> absl::Status {
                           if (lease != nullptr) TERSE_RETURN_IF_ERROR(lease->CheckHeld(*db));
                           return RemoveOrphanChunks(*db);
                         }));
  TERSE_FAILPOINT("coordinator.restart.epoch_bumped");
  TERSE_RETURN_IF_ERROR(FetchFiles(*db, files, directory));
  // An earlier process may have left files of a version that was never recorded.
  TERSE_RETURN_IF_ERROR(RemoveOtherCheckpoints(files, directory, {}));
  parts.place = db->place();
  parts.messages = std::make_unique<BlobMessages>(limits);
  parts.checkpoints = std::make_unique<BlobCheckpoints>(files, directory, db->place());
  parts.open_reader = [address, schema]() -> absl::StatusOr<std::unique_ptr<SqlDb>> {
    return PostgresDb::Open(address, schema, PostgresDb::Mode::kReader);
  };
  TERSE_ASSIGN_OR_RETURN(parts.reader, parts.open_reader());
  parts.writer = std::move(db);
  return std::unique_ptr<RunStore>(
      new PostgresRunStore(address, schema, directory, files, std::move(lock), std::move(parts)));
}

PostgresRunStore::PostgresRunStore(std::string address, std::string schema, std::string directory, FileSystem& files,
                                   std::unique_ptr<DirectoryLock> lock, Parts parts)
    : SqlRunStore(std::move(parts)),
      address_(std::move(address)),
      schema_(std::move(schema)),
      directory_(std::move(directory)),
      files_(files),
      lock_(std::move(lock)) {}

absl::Status PostgresRunStore::CreateRun(const RunRecord& run, absl::Span<const float> initial_weights) {
  for (const char* const name : {kModuleFile, kStartFile}) {
    const absl::StatusOr<std::string> bytes = files_.Read(FilePath(directory_, name));
    if (absl::IsNotFound(bytes.status())) continue;
    TERSE_RETURN_IF_ERROR(bytes.status());
    TERSE_RETURN_IF_ERROR(StoreFile(*this, name, *bytes));
  }
  return SqlRunStore::CreateRun(run, initial_weights);
}

absl::Status PostgresRunStore::Backup(const std::string& directory) {
  return MakeBackup(files_, directory, [&] { return CopyInto(directory); });
}

absl::StatusOr<PostgresRunStore::Pinned> PostgresRunStore::Pin() {
  // Between the two no checkpoint is retired and no log pruned.
  absl::MutexLock lock(&checkpoint_mutex_);
  Pinned pinned;
  TERSE_ASSIGN_OR_RETURN(pinned.checkpoint, NewestWholeCheckpoint());
  TERSE_ASSIGN_OR_RETURN(pinned.database, PostgresDb::Open(address_, schema_, PostgresDb::Mode::kReader));
  TERSE_RETURN_IF_ERROR(pinned.database->BeginReading());
  // A transaction begins to see with its first read.
  TERSE_RETURN_IF_ERROR(run_store_internal::SelectHead(*pinned.database).status());
  return pinned;
}

absl::Status PostgresRunStore::CopyInto(const std::string& directory) {
  TERSE_RETURN_IF_ERROR(CopyModule(files_, directory_, directory));
  TERSE_ASSIGN_OR_RETURN(const Pinned pinned, Pin());
  TERSE_ASSIGN_OR_RETURN(const CheckpointBytes bytes, CheckpointFiles(files_, directory).WriteFiles(pinned.checkpoint));
  TERSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<SqliteDb> copy,
      SqliteDb::Open(run_store_internal::DatabasePath(directory), SqliteDb::Mode::kWriter, files_.SqliteVfs()));
  TERSE_RETURN_IF_ERROR(MigrateSchema(*copy));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SegmentMessages> segments,
                         SegmentMessages::Open(*copy, files_, directory, MessageLimits()));
  TERSE_RETURN_IF_ERROR(copy->InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(CopyRun(*pinned.database, messages(), *copy, *segments));
    TERSE_RETURN_IF_ERROR(run_store_internal::RecordCheckpoint(*copy, CheckpointView(pinned.checkpoint), bytes));
    TERSE_RETURN_IF_ERROR(NoteVerified(*copy));
    return segments->Sync();
  }));
  TERSE_RETURN_IF_ERROR(copy->FlushLog());
  return files_.SyncDirectory(directory);
}

}  // namespace terse
