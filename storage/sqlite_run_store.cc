// Opening a store on SQLite: lock, integrity, schema, epoch, and tidying up after a crash.
#include "storage/sqlite_run_store.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/checkpoint_files.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/schema.h"
#include "storage/segment_messages.h"
#include "storage/state_directory.h"

namespace terse {

using run_store_internal::OwnedDatabase;

std::string run_store_internal::DatabasePath(const std::string& directory) {
  return absl::StrCat(directory, "/", kRunFile);
}

absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(run_store_internal::DatabasePath(directory), SqliteDb::Mode::kReader));
  Statement unfinished = db->Prepare("SELECT 1 FROM runs WHERE state NOT IN (?, ?)");
  return unfinished.Text(RunStateName(RunState::kFinished)).Text(RunStateName(RunState::kStopped)).Step();
}

namespace {

// Opening an empty file would begin a new run. The tables are there before the first checkpoint is.
absl::Status ExpectNoCheckpoints(SqliteDb& db, FileSystem& files, const std::string& directory) {
  Statement tables = db.Prepare("SELECT 1 FROM sqlite_schema LIMIT 1");
  TERSE_ASSIGN_OR_RETURN(const bool any, tables.Step());
  if (any) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> names = files.List(CheckpointsDirectory(directory));
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(names.status());
  if (std::none_of(names->begin(), names->end(), IsCheckpointName)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(db.path(), " is missing or empty, though there are checkpoints beside it", kDatabaseRemedy));
}

// After a flush that failed, the kernel shows the log as written and never writes it again. A process that finds it so
// would build on what a power loss takes away, so it writes the log anew.
absl::Status RewriteLog(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::string> log = files.Read(path);
  if (absl::IsNotFound(log.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(log.status());
  return log->empty() ? absl::OkStatus() : ReplaceFile(files, path, {*log});
}

absl::StatusOr<int64_t> SchemaVersion(SqliteDb& db) {
  Statement version = db.Prepare("PRAGMA user_version");
  TERSE_RETURN_IF_ERROR(version.Step().status());
  return version.GetInt(0);
}

absl::Status CheckSegments(SqliteDb& db, FileSystem& files, const std::string& directory, RunStore::Depth depth) {
  const std::string segments = SegmentsDirectory(directory);
  switch (depth) {
    case RunStore::Depth::kRecent: {
      TERSE_ASSIGN_OR_RETURN(const int64_t verified, VerifiedVersion(db));
      TERSE_ASSIGN_OR_RETURN(const SegmentEnds recent, NamedSegments(db, verified));
      return CheckLengths(files, segments, recent);
    }
    case RunStore::Depth::kDatabase:
      return absl::OkStatus();
    case RunStore::Depth::kEverything:
      return ForEachPlace(db, [&](const SegmentPlace& place) { return ReadSegment(files, segments, place).status(); });
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SqliteDb>> OpenWhole(const std::string& directory, FileSystem& files,
                                                    RunStore::Depth depth) {
  const std::string path = run_store_internal::DatabasePath(directory);
  TERSE_RETURN_IF_ERROR(RewriteLog(files, absl::StrCat(path, "-wal")));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(path, SqliteDb::Mode::kWriter, files.SqliteVfs()));
  // A migration copies rows, so it is made of what is known to be whole.
  TERSE_ASSIGN_OR_RETURN(const int64_t version, SchemaVersion(*db));
  const bool whole = depth != RunStore::Depth::kRecent || version != kSchemaVersion;
  if (whole) TERSE_RETURN_IF_ERROR(CheckPages(*db));
  TERSE_RETURN_IF_ERROR(ExpectNoCheckpoints(*db, files, directory));
  // A row that a migration copies gets a new checksum, so damage would no longer show.
  if (version < kSchemaVersion) TERSE_RETURN_IF_ERROR(CheckChecksums(*db));
  TERSE_RETURN_IF_ERROR(MigrateSchema(*db));
  TERSE_RETURN_IF_ERROR(whole ? CheckRows(*db) : CheckRecent(*db));
  TERSE_RETURN_IF_ERROR(CheckSegments(*db, files, directory, depth));
  return db;
}

// Files of checkpoints that a crash kept from being recorded, or whose row was already deleted.
absl::Status RemoveOrphans(SqliteDb& db, FileSystem& files, const std::string& directory) {
  std::set<int64_t> known;
  Statement rows = db.Prepare("SELECT version FROM checkpoints");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    known.insert(rows.GetInt(0));
  }
  return RemoveOtherCheckpoints(files, directory, known);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> RunStore::Open(const std::string& directory, FileSystem& files, Depth depth,
                                                         const MessageLimits& limits) {
  return SqliteRunStore::Open(directory, files, depth, limits);
}

absl::StatusOr<OwnedDatabase> run_store_internal::OpenDatabase(const std::string& directory, FileSystem& files,
                                                               RunStore::Depth depth) {
  OwnedDatabase owned;
  TERSE_ASSIGN_OR_RETURN(owned.lock, files.Lock(directory));
  TERSE_FAILPOINT("coordinator.restart.locked");
  absl::StatusOr<std::unique_ptr<SqliteDb>> db = OpenWhole(directory, files, depth);
  // A valid database that this program made can always be opened, so an internal error means that the file is damaged.
  if (absl::IsInternal(db.status())) return absl::DataLossError(absl::StrCat(db.status().message(), kDatabaseRemedy));
  TERSE_RETURN_IF_ERROR(db.status());
  owned.db = *std::move(db);
  TERSE_ASSIGN_OR_RETURN(owned.epoch, TakeOver(*owned.db, [&] { return NoteVerified(*owned.db); }));
  // SQLite syncs the names of the files that it makes, and says nothing when that fails.
  TERSE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  TERSE_FAILPOINT("coordinator.restart.epoch_bumped");
  return owned;
}

absl::StatusOr<std::unique_ptr<RunStore>> SqliteRunStore::Open(const std::string& directory, FileSystem& files,
                                                               Depth depth, const MessageLimits& limits) {
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(CheckpointsDirectory(directory)));
  TERSE_ASSIGN_OR_RETURN(OwnedDatabase owned, run_store_internal::OpenDatabase(directory, files, depth));
  TERSE_RETURN_IF_ERROR(RemoveOrphans(*owned.db, files, directory));
  Parts parts;
  parts.place = directory;
  parts.epoch = owned.epoch;
  TERSE_ASSIGN_OR_RETURN(parts.messages, SegmentMessages::Open(*owned.db, files, directory, limits));
  parts.checkpoints = std::make_unique<CheckpointFiles>(files, directory);
  parts.open_reader = [path = owned.db->path(), vfs = files.SqliteVfs()]() -> absl::StatusOr<std::unique_ptr<SqlDb>> {
    return SqliteDb::Open(path, SqliteDb::Mode::kReader, vfs);
  };
  TERSE_ASSIGN_OR_RETURN(parts.reader, parts.open_reader());
  parts.writer = std::move(owned.db);
  return std::unique_ptr<RunStore>(new SqliteRunStore(directory, files, std::move(owned.lock), std::move(parts)));
}

SqliteRunStore::SqliteRunStore(std::string directory, FileSystem& files, std::unique_ptr<DirectoryLock> lock,
                               Parts parts)
    : SqlRunStore(std::move(parts)), directory_(std::move(directory)), files_(files), lock_(std::move(lock)) {}

// A store that cannot note it is verified from further back at its next opening.
SqliteRunStore::~SqliteRunStore() { Write(NoteVerified).IgnoreError(); }

}  // namespace terse
