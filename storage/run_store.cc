// Opening a store: lock, integrity, schema, epoch, and tidying up after a crash.
#include "storage/run_store.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/status.h"
#include "storage/schema.h"
#include "storage/sqlite_run_store.h"

namespace terse {

absl::string_view RunStateName(RunState state) {
  switch (state) {
    case RunState::kActive:
      return "active";
    case RunState::kFinished:
      return "finished";
    case RunState::kStopped:
      return "stopped";
  }
  return "unknown";
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

}  // namespace run_store_internal

namespace {

using run_store_internal::InsertEvent;
using run_store_internal::NowUs;

absl::Status CheckIntegrity(SqliteDb& db) {
  Statement statement = db.Prepare("PRAGMA quick_check(1)");
  TERSE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (row && statement.GetText(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(db.path(), " is damaged: ", row ? statement.GetText(0) : "no answer from its integrity check",
                   "; restore the directory from a copy, or name an empty one to start a new run"));
}

// The updates of a CLOSED round were only in memory; the round ends without them, and its clients fold their work
// forward.
absl::Status AbortClosedRounds(SqliteDb& db) {
  Statement closed = db.Prepare("SELECT id FROM rounds WHERE state = 'closed'");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, closed.Step());
    if (!row) break;
    EventRecord event;
    event.time_us = NowUs();
    event.kind = "round_aborted";
    event.round = closed.GetInt(0);
    event.detail = "the coordinator stopped between closing and committing the round";
    TERSE_RETURN_IF_ERROR(InsertEvent(db, event));
  }
  return db.Prepare("UPDATE rounds SET state = 'aborted', settled_us = ? WHERE state = 'closed'").Int(NowUs()).Run();
}

absl::StatusOr<int64_t> TakeOver(SqliteDb& db) {
  int64_t epoch = 0;
  TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE head SET epoch = epoch + 1").RunForOne(absl::StrCat(db.path(), " has no head row")));
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    epoch = head.epoch;
    return AbortClosedRounds(db);
  }));
  return epoch;
}

bool IsCheckpointFile(absl::string_view name) {
  absl::ConsumeSuffix(&name, kTemporarySuffix);
  if (!absl::ConsumeSuffix(&name, ".ckpt") || name.size() < 10) return false;
  return name.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Files of checkpoints that a crash kept from being recorded, or whose row was already deleted. Others' files stay.
absl::Status RemoveOrphans(SqliteDb& db, const std::string& directory) {
  std::set<std::string> known;
  Statement rows = db.Prepare("SELECT version FROM checkpoints");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    known.insert(run_store_internal::CheckpointName(rows.GetInt(0)));
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (known.count(name) > 0 || !IsCheckpointFile(name)) continue;
    TERSE_RETURN_IF_ERROR(RemoveFile(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunStore>> RunStore::Open(const std::string& directory) {
  return SqliteRunStore::Open(directory);
}

absl::StatusOr<std::unique_ptr<RunStore>> SqliteRunStore::Open(const std::string& directory) {
  const std::string checkpoints = absl::StrCat(directory, "/checkpoints");
  TERSE_RETURN_IF_ERROR(MakeDirectory(checkpoints));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<DirectoryLock> lock, DirectoryLock::Acquire(directory));
  const std::string path = absl::StrCat(directory, "/run.sqlite");
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> writer, SqliteDb::Open(path, SqliteDb::Mode::kWriter));
  TERSE_RETURN_IF_ERROR(CheckIntegrity(*writer));
  TERSE_RETURN_IF_ERROR(MigrateSchema(*writer));
  TERSE_ASSIGN_OR_RETURN(const int64_t epoch, TakeOver(*writer));
  TERSE_RETURN_IF_ERROR(RemoveOrphans(*writer, checkpoints));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDb> reader, SqliteDb::Open(path, SqliteDb::Mode::kReader));
  return std::unique_ptr<RunStore>(
      new SqliteRunStore(directory, std::move(lock), std::move(writer), std::move(reader), epoch));
}

SqliteRunStore::SqliteRunStore(const std::string& directory, std::unique_ptr<DirectoryLock> lock,
                               std::unique_ptr<SqliteDb> writer, std::unique_ptr<SqliteDb> reader, int64_t epoch)
    : directory_(directory),
      lock_(std::move(lock)),
      epoch_(epoch),
      writer_(std::move(writer)),
      reader_(std::move(reader)) {}

absl::Status SqliteRunStore::Write(absl::FunctionRef<absl::Status(SqliteDb&)> body) {
  absl::MutexLock lock(&write_mutex_);
  SqliteDb& db = *writer_;
  return db.InTransaction([&]() -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    if (head.epoch != epoch_) {
      return absl::FailedPreconditionError(absl::StrCat(db.path(), " was taken over by another coordinator (epoch ",
                                                        head.epoch, ", ours is ", epoch_, "); stop one of the two"));
    }
    return body(db);
  });
}

absl::Status SqliteRunStore::Read(absl::FunctionRef<absl::Status(SqliteDb&)> body) {
  absl::MutexLock lock(&read_mutex_);
  SqliteDb& db = *reader_;
  TERSE_RETURN_IF_ERROR(db.Prepare("BEGIN").Run());
  const absl::Status status = body(db);
  const absl::Status end = db.Prepare("ROLLBACK").Run();
  return status.ok() ? end : status;
}

std::string SqliteRunStore::CheckpointPath(int64_t version) const {
  return absl::StrCat(directory_, "/checkpoints/", run_store_internal::CheckpointName(version));
}

}  // namespace terse
