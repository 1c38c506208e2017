// Checkpoint files and their rows, and the pruning of the log that goes with them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/sqlite_run_store.h"
#include "storage/weights_file.h"

namespace terse {

using run_store_internal::CheckpointPath;
using run_store_internal::ServerStatePath;

namespace {

// Messages deleted in one transaction: a commit never waits for more than this.
constexpr int64_t kPruneBatch = 16;

// Whether `version` was committed with this hash. A version that is older than the log is believed.
absl::Status CheckCommitted(SqliteDb& db, const CheckpointView& checkpoint) {
  TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
  if (checkpoint.version < 0 || checkpoint.version > head.version || head.model_hash.IsZero()) {
    return absl::FailedPreconditionError(
        absl::StrCat("version ", checkpoint.version, " is not committed; the head is ", head.version));
  }
  Id128 committed = checkpoint.version == head.version ? head.model_hash : checkpoint.model_hash;
  static const auto& query =
      *new std::string(absl::StrCat("SELECT model_hash, ", HasChecksum("downstream_log", "downstream_log"),
                                    " FROM downstream_log WHERE version = ?"));
  Statement statement = db.Prepare(query);
  TERSE_ASSIGN_OR_RETURN(const bool logged, statement.Int(checkpoint.version).Step());
  if (logged) {
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, statement, 1, "downstream_log"));
    committed = statement.GetId(0);
  }
  if (committed == checkpoint.model_hash) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("version ", checkpoint.version, " was committed with hash ",
                                                    committed.ToHex(), ", not ", checkpoint.model_hash.ToHex()));
}

absl::Status LoadServerState(FileSystem& files, const std::string& path, const RunStore::CheckpointFile& file,
                             Checkpoint* checkpoint) {
  TERSE_ASSIGN_OR_RETURN(const std::string bytes, files.Read(path, file.server_state_bytes));
  absl::StatusOr<WeightsFile> state = ParseWeights(kServerStateMagic, bytes);
  if (!state.ok()) return Annotate(state.status(), path);
  if (state->version != file.version || state->id != file.model_hash) {
    return absl::DataLossError(absl::StrCat(path, " is not the state that belongs to checkpoint ", file.version));
  }
  checkpoint->server_state = std::move(state->weights);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<RunStore::CheckpointFile>> run_store_internal::SelectCheckpoints(
    SqliteDb& db, const std::string& directory, bool also_damaged) {
  std::vector<RunStore::CheckpointFile> files;
  Statement rows = db.Prepare(
      "SELECT version, model_hash, c.bytes, COALESCE(s.bytes, 0) FROM checkpoints AS c "
      "LEFT JOIN server_states AS s USING (version) WHERE damaged <= ? ORDER BY version DESC");
  rows.Int(also_damaged ? 1 : 0);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return files;
    files.push_back(
        {rows.GetInt(0), rows.GetId(1), CheckpointPath(directory, rows.GetInt(0)), rows.GetInt(2), rows.GetInt(3)});
  }
}

absl::StatusOr<Checkpoint> run_store_internal::LoadCheckpoint(FileSystem& files, const std::string& directory,
                                                              const RunStore::CheckpointFile& file) {
  TERSE_ASSIGN_OR_RETURN(const std::string bytes, files.Read(file.path, file.bytes));
  absl::StatusOr<Checkpoint> checkpoint = ParseCheckpoint(bytes);
  if (!checkpoint.ok()) return Annotate(checkpoint.status(), file.path);
  if (checkpoint->version != file.version || checkpoint->model_hash != file.model_hash) {
    return absl::DataLossError(absl::StrCat(file.path, " is not the checkpoint that the database recorded"));
  }
  if (file.server_state_bytes > 0) {
    TERSE_RETURN_IF_ERROR(LoadServerState(files, ServerStatePath(directory, file.version), file, &*checkpoint));
  }
  return checkpoint;
}

absl::Status run_store_internal::NoWholeCheckpoint(const std::string& directory, absl::string_view reason) {
  return absl::DataLossError(
      absl::StrCat(directory, "/checkpoints holds no whole checkpoint: ", reason, kDatabaseRemedy));
}

std::string SerializeCheckpoint(const CheckpointView& checkpoint) {
  return SerializeWeights(kCheckpointMagic, checkpoint.version, checkpoint.model_hash, checkpoint.weights);
}

absl::StatusOr<Checkpoint> ParseCheckpoint(absl::string_view bytes) {
  absl::StatusOr<WeightsFile> file = ParseWeights(kCheckpointMagic, bytes);
  if (!file.ok()) return Annotate(file.status(), "the checkpoint");
  Checkpoint checkpoint;
  checkpoint.version = file->version;
  checkpoint.model_hash = file->id;
  checkpoint.weights = std::move(file->weights);
  if (HashWeights(checkpoint.weights) != checkpoint.model_hash) {
    return absl::DataLossError("the checkpoint: its weights do not have the model hash that it names");
  }
  return checkpoint;
}

absl::StatusOr<SqliteRunStore::CheckpointBytes> SqliteRunStore::WriteCheckpointFiles(const std::string& directory,
                                                                                     const CheckpointView& checkpoint) {
  CheckpointBytes sizes;
  if (!checkpoint.server_state.empty()) {
    const WeightsBytes state(kServerStateMagic, checkpoint.version, checkpoint.model_hash, checkpoint.server_state);
    TERSE_RETURN_IF_ERROR(Watch(ReplaceFile(files_, ServerStatePath(directory, checkpoint.version), state.parts())));
    sizes.server_state = static_cast<int64_t>(state.size());
    TERSE_FAILPOINT("coordinator.checkpoint.state_written");
  }
  const WeightsBytes weights(kCheckpointMagic, checkpoint.version, checkpoint.model_hash, checkpoint.weights);
  TERSE_RETURN_IF_ERROR(Watch(ReplaceFile(files_, CheckpointPath(directory, checkpoint.version), weights.parts())));
  sizes.weights = static_cast<int64_t>(weights.size());
  return sizes;
}

absl::Status SqliteRunStore::RecordCheckpoint(SqliteDb& db, const CheckpointView& checkpoint,
                                              const CheckpointBytes& bytes) {
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT OR REPLACE INTO checkpoints (version, model_hash, bytes) VALUES (?, ?, ?)")
                            .Int(checkpoint.version)
                            .Id(checkpoint.model_hash)
                            .Int(bytes.weights)
                            .Run());
  if (bytes.server_state == 0) {
    return db.Prepare("DELETE FROM server_states WHERE version = ?").Int(checkpoint.version).Run();
  }
  return db.Prepare("INSERT OR REPLACE INTO server_states (version, bytes) VALUES (?, ?)")
      .Int(checkpoint.version)
      .Int(bytes.server_state)
      .Run();
}

absl::Status SqliteRunStore::WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) {
  if (keep < 1) return absl::InvalidArgumentError(absl::StrCat("cannot keep ", keep, " checkpoints; at least 1"));
  if (HashWeights(checkpoint.weights) != checkpoint.model_hash) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", checkpoint.version, ": its hash is not its weights'"));
  }
  absl::MutexLock lock(&checkpoint_mutex_);
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) { return CheckCommitted(db, checkpoint); }));
  TERSE_ASSIGN_OR_RETURN(const CheckpointBytes bytes, WriteCheckpointFiles(directory_, checkpoint));
  TERSE_FAILPOINT("coordinator.checkpoint.before_row");
  TERSE_RETURN_IF_ERROR(Write([&](SqliteDb& db) { return RecordCheckpoint(db, checkpoint, bytes); }));
  TERSE_FAILPOINT("coordinator.checkpoint.recorded");
  return RetireCheckpoints(keep);
}

absl::Status SqliteRunStore::RetireCheckpoints(int64_t keep) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<CheckpointFile> whole, CheckpointFiles(false));
  if (whole.empty()) return absl::OkStatus();
  const size_t kept = std::min(whole.size(), static_cast<size_t>(keep));
  const int64_t oldest = whole[kept - 1].version;
  TERSE_ASSIGN_OR_RETURN(const std::vector<CheckpointFile> all, CheckpointFiles(true));
  // The row goes first: a file without a row is an orphan that Open removes, a row without a file would be damage.
  TERSE_RETURN_IF_ERROR(Write([&](SqliteDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM checkpoints WHERE version < ?").Int(oldest).Run());
    return db.Prepare("DELETE FROM server_states WHERE version < ?").Int(oldest).Run();
  }));
  for (const CheckpointFile& file : all) {
    if (file.version >= oldest) continue;
    TERSE_RETURN_IF_ERROR(files_.Remove(file.path));
    TERSE_RETURN_IF_ERROR(files_.Remove(ServerStatePath(directory_, file.version)));
  }
  TERSE_RETURN_IF_ERROR(Prune("aggregates", oldest));
  TERSE_ASSIGN_OR_RETURN(const int64_t cheap, OldestCheapVersion(whole.front().bytes));
  TERSE_RETURN_IF_ERROR(Prune("downstream_log", std::min(oldest, cheap)));
  return RemoveSegments();
}

// The oldest version from which the log to the head has at most so many bytes.
absl::StatusOr<int64_t> SqliteRunStore::OldestCheapVersion(int64_t bytes) {
  int64_t version = 0;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    version = head.version;
    static const auto& query =
        *new std::string(absl::StrCat("SELECT version, ", kMessageBytes, " FROM downstream_log ORDER BY version DESC"));
    Statement rows = db.Prepare(query);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row || rows.GetInt(1) > bytes) return absl::OkStatus();
      bytes -= rows.GetInt(1);
      version = rows.GetInt(0) - 1;
    }
  }));
  return version;
}

absl::Status SqliteRunStore::Prune(absl::string_view table, int64_t up_to) {
  int64_t pruned = kPruneBatch;
  while (pruned == kPruneBatch) {
    TERSE_RETURN_IF_ERROR(Write([&](SqliteDb& db) -> absl::Status {
      pruned = 0;
      TERSE_RETURN_IF_ERROR(db.Prepare(absl::StrCat("DELETE FROM ", table, " WHERE version IN (SELECT version FROM ",
                                                    table, " WHERE version <= ? ORDER BY version LIMIT ?)"))
                                .Int(up_to)
                                .Int(kPruneBatch)
                                .Run());
      pruned = db.Changes();
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status SqliteRunStore::RemoveSegments() {
  // In a transaction of its own, so that no batch has appended what its rows do not name yet.
  return Write([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const SegmentEnds named, NamedSegments(db));
    return segments_->RemoveExcept(named);
  });
}

absl::StatusOr<std::vector<RunStore::CheckpointFile>> SqliteRunStore::CheckpointFiles(bool also_damaged) {
  std::vector<CheckpointFile> files;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(files, run_store_internal::SelectCheckpoints(db, directory_, also_damaged));
    return absl::OkStatus();
  }));
  return files;
}

absl::Status SqliteRunStore::MarkCheckpoint(int64_t version, bool damaged, const std::string& why) {
  return Write([&](SqliteDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE checkpoints SET damaged = ?1 WHERE version = ?2 AND damaged <> ?1")
                              .Int(damaged ? 1 : 0)
                              .Int(version)
                              .Run());
    if (db.Changes() == 0 || !damaged) return absl::OkStatus();
    EventRecord event;
    event.time_us = run_store_internal::NowUs();
    event.kind = event::kCheckpointDamaged;
    event.detail = why;
    return run_store_internal::InsertEvent(db, event);
  });
}

absl::StatusOr<Checkpoint> SqliteRunStore::ReadNewestCheckpoint() {
  absl::MutexLock lock(&checkpoint_mutex_);
  return NewestWholeCheckpoint();
}

absl::StatusOr<Checkpoint> SqliteRunStore::NewestWholeCheckpoint() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<CheckpointFile> files, CheckpointFiles(true));
  std::string reason = "none is recorded";
  for (const CheckpointFile& file : files) {
    absl::StatusOr<Checkpoint> checkpoint = run_store_internal::LoadCheckpoint(files_, directory_, file);
    if (!checkpoint.ok()) reason = std::string(checkpoint.status().message());
    TERSE_RETURN_IF_ERROR(MarkCheckpoint(file.version, !checkpoint.ok(), reason));
    if (checkpoint.ok()) return checkpoint;
  }
  return run_store_internal::NoWholeCheckpoint(directory_, reason);
}

absl::StatusOr<RunStore::CheckpointFile> SqliteRunStore::NewestCheckpointFile() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<CheckpointFile> files, CheckpointFiles(false));
  if (files.empty()) return absl::NotFoundError(absl::StrCat(directory_, " holds no checkpoint yet"));
  return files.front();
}

}  // namespace terse
