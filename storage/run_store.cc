// Opening a store: lock, integrity, schema, epoch, and tidying up after a crash.
#include "storage/run_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/schema.h"
#include "storage/sqlite_run_store.h"
#include "storage/state_directory.h"

namespace terse {

absl::string_view RunStateName(RunState state) {
  switch (state) {
    case RunState::kActive:
      return "active";
    case RunState::kPaused:
      return "paused";
    case RunState::kStopping:
      return "stopping";
    case RunState::kFinished:
      return "finished";
    case RunState::kStopped:
      return "stopped";
  }
  return "unknown";
}

absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteDb> db,
                         SqliteDb::Open(run_store_internal::DatabasePath(directory), SqliteDb::Mode::kReader));
  Statement unfinished = db->Prepare("SELECT 1 FROM runs WHERE state NOT IN (?, ?)");
  return unfinished.Text(RunStateName(RunState::kFinished)).Text(RunStateName(RunState::kStopped)).Step();
}

absl::string_view RoundStateName(RoundState state) {
  switch (state) {
    case RoundState::kOpen:
      return "open";
    case RoundState::kClosed:
      return "closed";
    case RoundState::kCommitted:
      return "committed";
    case RoundState::kAborted:
      return "aborted";
  }
  return "unknown";
}

namespace run_store_internal {

int64_t NowUs() { return absl::GetCurrentTimeNanos() / 1000; }

std::string CheckpointName(int64_t version) { return absl::StrFormat("%010d.ckpt", version); }
std::string ServerStateName(int64_t version) { return absl::StrFormat("%010d.state", version); }

std::string CheckpointPath(const std::string& directory, int64_t version) {
  return absl::StrCat(directory, "/checkpoints/", CheckpointName(version));
}

std::string ServerStatePath(const std::string& directory, int64_t version) {
  return absl::StrCat(directory, "/checkpoints/", ServerStateName(version));
}

std::string DatabasePath(const std::string& directory) { return absl::StrCat(directory, "/", kRunFile); }

}  // namespace run_store_internal

namespace {

using run_store_internal::OwnedDatabase;

bool IsCheckpointFile(absl::string_view name) {
  absl::ConsumeSuffix(&name, kTemporarySuffix);
  if (!absl::ConsumeSuffix(&name, ".ckpt") && !absl::ConsumeSuffix(&name, ".state")) return false;
  if (name.size() < 10) return false;
  return name.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Opening an empty file would begin a new run. The tables are there before the first checkpoint is.
absl::Status ExpectNoCheckpoints(SqliteDb& db, FileSystem& files, const std::string& directory) {
  Statement tables = db.Prepare("SELECT 1 FROM sqlite_schema LIMIT 1");
  TERSE_ASSIGN_OR_RETURN(const bool any, tables.Step());
  if (any) return absl::OkStatus();
  const absl::StatusOr<std::vector<std::string>> names = files.List(absl::StrCat(directory, "/checkpoints"));
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(names.status());
  if (std::none_of(names->begin(), names->end(), IsCheckpointFile)) return absl::OkStatus();
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

// The updates of a CLOSED round died with the process; the round ends without them, and its clients fold their work
// forward.
absl::Status AbortClosedRounds(SqliteDb& db) {
  if (Mutated(Mutant::kReopenClosed)) {
    return db.Script(
        "DELETE FROM updates WHERE round IN (SELECT id FROM rounds WHERE state = 'closed');"
        "DELETE FROM first_updates WHERE round IN (SELECT id FROM rounds WHERE state = 'closed');"
        "DELETE FROM metrics WHERE round IN (SELECT id FROM rounds WHERE state = 'closed');"
        "DELETE FROM update_metrics WHERE round IN (SELECT id FROM rounds WHERE state = 'closed');"
        "UPDATE rounds SET state = 'open' WHERE state = 'closed'");
  }
  return run_store_internal::AbortRounds(db, RoundState::kClosed,
                                         "the coordinator stopped between closing and committing the round");
}

absl::StatusOr<int64_t> TakeOver(SqliteDb& db) {
  int64_t epoch = 0;
  TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE head SET epoch = epoch + 1").RunForOne(absl::StrCat(db.path(), " has no head row")));
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    epoch = head.epoch;
    TERSE_RETURN_IF_ERROR(AbortClosedRounds(db));
    return NoteVerified(db);
  }));
  return epoch;
}

// Files of checkpoints that a crash kept from being recorded, or whose row was already deleted. Others' files stay.
absl::Status RemoveOrphans(SqliteDb& db, FileSystem& files, const std::string& directory) {
  std::set<std::string> known;
  Statement rows = db.Prepare("SELECT version FROM checkpoints");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    known.insert(run_store_internal::CheckpointName(rows.GetInt(0)));
    known.insert(run_store_internal::ServerStateName(rows.GetInt(0)));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(directory));
  for (const std::string& name : names) {
    if (known.count(name) > 0 || !IsCheckpointFile(name)) continue;
    TERSE_RETURN_IF_ERROR(files.Remove(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
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
  TERSE_ASSIGN_OR_RETURN(owned.epoch, TakeOver(*owned.db));
  // SQLite syncs the names of the files that it makes, and says nothing when that fails.
  TERSE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  TERSE_FAILPOINT("coordinator.restart.epoch_bumped");
  return owned;
}

absl::StatusOr<std::unique_ptr<RunStore>> SqliteRunStore::Open(const std::string& directory, FileSystem& files,
                                                               Depth depth, const MessageLimits& limits) {
  const std::string checkpoints = absl::StrCat(directory, "/checkpoints");
  TERSE_RETURN_IF_ERROR(files.MakeDirectory(checkpoints));
  TERSE_ASSIGN_OR_RETURN(OwnedDatabase owned, run_store_internal::OpenDatabase(directory, files, depth));
  TERSE_RETURN_IF_ERROR(RemoveOrphans(*owned.db, files, checkpoints));
  TERSE_ASSIGN_OR_RETURN(const SegmentEnds named, NamedSegments(*owned.db));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Segments> segments,
                         Segments::Open(files, SegmentsDirectory(directory), named, limits));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> reader,
                         SqliteDb::Open(owned.db->path(), SqliteDb::Mode::kReader, files.SqliteVfs()));
  return std::unique_ptr<RunStore>(
      new SqliteRunStore(directory, files, std::move(owned), std::move(reader), std::move(segments)));
}

SqliteRunStore::SqliteRunStore(const std::string& directory, FileSystem& files, OwnedDatabase owned,
                               std::unique_ptr<SqliteDb> reader, std::unique_ptr<Segments> segments)
    : directory_(directory),
      files_(files),
      lock_(std::move(owned.lock)),
      epoch_(owned.epoch),
      writer_(std::move(owned.db)),
      segments_(std::move(segments)),
      readers_(std::move(reader), files.SqliteVfs()) {}

// A store that cannot note it is verified from further back at its next opening.
SqliteRunStore::~SqliteRunStore() { Write(NoteVerified).IgnoreError(); }

absl::Status SqliteRunStore::Watch(const absl::Status& status) {
  if (IsSyncFailure(status)) {
    absl::MutexLock lock(&write_mutex_);
    writer_->Break(status);
  }
  return status;
}

}  // namespace terse
