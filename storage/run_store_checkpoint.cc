// Checkpoints and their rows, and the pruning of the log that goes with them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/integrity.h"
#include "storage/message_rows.h"
#include "storage/sql_run_store.h"
#include "storage/weights_file.h"

namespace terse {

namespace {

// Messages deleted in one transaction: a commit never waits for more than this.
constexpr int64_t kPruneBatch = 16;

// Whether `version` was committed with this hash, and the log leads on from there. Of the version before the log the
// hash is believed.
absl::Status CheckCommitted(SqlDb& db, const CheckpointView& checkpoint) {
  TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
  if (checkpoint.version < 0 || checkpoint.version > head.version || head.model_hash.IsZero()) {
    return absl::FailedPreconditionError(
        absl::StrCat("version ", checkpoint.version, " is not committed; the head is ", head.version));
  }
  {
    Statement begin = db.Prepare("SELECT COALESCE((SELECT MIN(version) - 1 FROM downstream_log), ?)");
    TERSE_RETURN_IF_ERROR(begin.Int(head.version).Step().status());
    if (checkpoint.version < begin.GetInt(0)) {
      return absl::FailedPreconditionError(absl::StrCat("the log no longer reaches back to version ",
                                                        checkpoint.version, "; it begins after ", begin.GetInt(0)));
    }
  }
  Id128 committed = checkpoint.version == head.version ? head.model_hash : checkpoint.model_hash;
  static const auto& query =
      *new SqlText(SqlCat({"SELECT model_hash, ", HasChecksum("downstream_log", "downstream_log"),
                           " FROM downstream_log WHERE version = ?"}));
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

// Whether a relay's head may move to `version`, to which no log leads.
absl::Status CheckReplaceable(SqlDb& db, int64_t version) {
  TERSE_RETURN_IF_ERROR(run_store_internal::ExpectMovableHead(db));
  TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
  if (head.version < version) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("version ", version, " is not later than the head, which is ", head.version));
}

}  // namespace

absl::StatusOr<std::vector<RecordedCheckpoint>> run_store_internal::SelectCheckpoints(SqlDb& db, bool also_damaged) {
  std::vector<RecordedCheckpoint> recorded;
  Statement rows = db.Prepare(
      "SELECT version, model_hash, c.bytes, COALESCE(s.bytes, 0) FROM checkpoints AS c "
      "LEFT JOIN server_states AS s USING (version) WHERE damaged <= ? ORDER BY version DESC");
  rows.Int(also_damaged ? 1 : 0);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return recorded;
    recorded.push_back({rows.GetInt(0), rows.GetId(1), {rows.GetInt(2), rows.GetInt(3)}});
  }
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

absl::Status run_store_internal::RecordCheckpoint(SqlDb& db, const CheckpointView& checkpoint,
                                                  const CheckpointBytes& bytes) {
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO checkpoints (version, model_hash, bytes) VALUES (?, ?, ?) ON CONFLICT "
                                   "(version) DO UPDATE SET model_hash = excluded.model_hash, bytes = excluded.bytes, "
                                   "damaged = 0")
                            .Int(checkpoint.version)
                            .Id(checkpoint.model_hash)
                            .Int(bytes.weights)
                            .Run());
  if (bytes.server_state == 0) {
    return db.Prepare("DELETE FROM server_states WHERE version = ?").Int(checkpoint.version).Run();
  }
  return db
      .Prepare(
          "INSERT INTO server_states (version, bytes) VALUES (?, ?) ON CONFLICT (version) "
          "DO UPDATE SET bytes = excluded.bytes")
      .Int(checkpoint.version)
      .Int(bytes.server_state)
      .Run();
}

absl::Status SqlRunStore::WriteCheckpoint(const CheckpointView& checkpoint, int64_t keep) {
  if (keep < 1) return absl::InvalidArgumentError(absl::StrCat("cannot keep ", keep, " checkpoints; at least 1"));
  if (HashWeights(checkpoint.weights) != checkpoint.model_hash) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", checkpoint.version, ": its hash is not its weights'"));
  }
  absl::MutexLock lock(&checkpoint_mutex_);
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) { return CheckCommitted(db, checkpoint); }));
  TERSE_ASSIGN_OR_RETURN(const CheckpointBytes bytes, Watch(checkpoints_->Write(*this, checkpoint)));
  TERSE_FAILPOINT("coordinator.checkpoint.before_row");
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) { return run_store_internal::RecordCheckpoint(db, checkpoint, bytes); }));
  TERSE_FAILPOINT("coordinator.checkpoint.recorded");
  return RetireCheckpoints(keep);
}

absl::Status SqlRunStore::ReplaceHead(const CheckpointView& model) {
  if (HashWeights(model.weights) != model.model_hash) {
    return absl::InvalidArgumentError(absl::StrCat("version ", model.version, ": its hash is not its weights'"));
  }
  absl::MutexLock lock(&checkpoint_mutex_);
  // Looks first: what is refused must not overwrite the parts of a checkpoint that is recorded.
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) { return CheckReplaceable(db, model.version); }));
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> before, Recorded(/*also_damaged=*/true));
  TERSE_ASSIGN_OR_RETURN(const CheckpointBytes bytes, Watch(checkpoints_->Write(*this, model)));
  TERSE_FAILPOINT("coordinator.checkpoint.before_row");
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(CheckReplaceable(db, model.version));
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE head SET version = ?, model_hash = ?")
                              .Int(model.version)
                              .Id(model.model_hash)
                              .RunForOne(absl::StrCat(place_, " has no head row")));
    // The checkpoints before go with the log that led on from them.
    for (const char* table : {"downstream_log", "aggregates", "checkpoints", "server_states"}) {
      TERSE_RETURN_IF_ERROR(db.Prepare(absl::StrCat("DELETE FROM ", table)).Run());
    }
    return run_store_internal::RecordCheckpoint(db, model, bytes);
  }));
  TERSE_FAILPOINT("coordinator.checkpoint.recorded");
  for (const RecordedCheckpoint& checkpoint : before) {
    TERSE_RETURN_IF_ERROR(checkpoints_->Remove(*this, checkpoint.version));
  }
  return RemoveMessages();
}

absl::Status SqlRunStore::RetireCheckpoints(int64_t keep) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> whole, Recorded(/*also_damaged=*/false));
  if (whole.empty()) return absl::OkStatus();
  const size_t kept = std::min(whole.size(), static_cast<size_t>(keep));
  const int64_t oldest = whole[kept - 1].version;
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> all, Recorded(/*also_damaged=*/true));
  // The row goes first: parts without a row are orphans that Open removes, a row without its parts would be damage.
  TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM checkpoints WHERE version < ?").Int(oldest).Run());
    return db.Prepare("DELETE FROM server_states WHERE version < ?").Int(oldest).Run();
  }));
  for (const RecordedCheckpoint& checkpoint : all) {
    if (checkpoint.version < oldest) TERSE_RETURN_IF_ERROR(checkpoints_->Remove(*this, checkpoint.version));
  }
  TERSE_RETURN_IF_ERROR(Prune("aggregates", oldest));
  TERSE_ASSIGN_OR_RETURN(const int64_t cheap, OldestCheapVersion(whole.front().bytes.weights));
  TERSE_RETURN_IF_ERROR(Prune("downstream_log", std::min(oldest, cheap)));
  return RemoveMessages();
}

// The oldest version from which the log to the head has at most so many bytes.
absl::StatusOr<int64_t> SqlRunStore::OldestCheapVersion(int64_t bytes) {
  int64_t version = 0;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const Head head, run_store_internal::SelectHead(db));
    version = head.version;
    static const auto& query =
        *new SqlText(SqlCat({"SELECT version, ", kMessageBytes, " FROM downstream_log ORDER BY version DESC"}));
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

absl::Status SqlRunStore::Prune(absl::string_view table, int64_t up_to) {
  int64_t pruned = kPruneBatch;
  while (pruned == kPruneBatch) {
    TERSE_RETURN_IF_ERROR(Write([&](SqlDb& db) -> absl::Status {
      pruned = 0;
      TERSE_RETURN_IF_ERROR(db.Prepare(absl::StrCat("DELETE FROM ", table, " WHERE version IN (SELECT version FROM ",
                                                    table, " WHERE version <= ? ORDER BY version LIMIT ?)"))
                                .Int(up_to)
                                .Int(kPruneBatch)
                                .Run());
      TERSE_ASSIGN_OR_RETURN(pruned, db.Changes());
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status SqlRunStore::RemoveMessages() {
  // In a transaction of its own, so that no batch has appended what its rows do not name yet.
  return Write([&](SqlDb& db) { return messages_->RemoveUnnamed(db); });
}

absl::StatusOr<std::vector<RecordedCheckpoint>> SqlRunStore::Recorded(bool also_damaged) {
  std::vector<RecordedCheckpoint> recorded;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(recorded, run_store_internal::SelectCheckpoints(db, also_damaged));
    return absl::OkStatus();
  }));
  return recorded;
}

absl::Status SqlRunStore::MarkCheckpoint(int64_t version, bool damaged, const std::string& why) {
  return Write([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE checkpoints SET damaged = ?1 WHERE version = ?2 AND damaged <> ?1")
                              .Int(damaged ? 1 : 0)
                              .Int(version)
                              .Run());
    TERSE_ASSIGN_OR_RETURN(const int64_t changes, db.Changes());
    if (changes == 0 || !damaged) return absl::OkStatus();
    EventRecord event;
    event.time_us = run_store_internal::NowUs();
    event.kind = event::kCheckpointDamaged;
    event.detail = why;
    return run_store_internal::InsertEvent(db, event);
  });
}

absl::StatusOr<Checkpoint> SqlRunStore::ReadNewestCheckpoint() {
  absl::MutexLock lock(&checkpoint_mutex_);
  return NewestWholeCheckpoint();
}

absl::StatusOr<Checkpoint> SqlRunStore::NewestWholeCheckpoint() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> recorded, Recorded(/*also_damaged=*/true));
  std::string reason = "none is recorded";
  for (const RecordedCheckpoint& one : recorded) {
    absl::StatusOr<Checkpoint> checkpoint = checkpoints_->Load(*this, one);
    if (!checkpoint.ok()) reason = std::string(checkpoint.status().message());
    TERSE_RETURN_IF_ERROR(MarkCheckpoint(one.version, !checkpoint.ok(), reason));
    if (checkpoint.ok()) return checkpoint;
  }
  return NoWholeCheckpoint(checkpoints_->place(), reason, remedy_);
}

absl::StatusOr<RunStore::CheckpointFile> SqlRunStore::NewestCheckpointFile() {
  TERSE_ASSIGN_OR_RETURN(const std::vector<RecordedCheckpoint> recorded, Recorded(/*also_damaged=*/false));
  if (recorded.empty()) return absl::NotFoundError(absl::StrCat(place_, " holds no checkpoint yet"));
  const RecordedCheckpoint& newest = recorded.front();
  TERSE_ASSIGN_OR_RETURN(std::string path, checkpoints_->FileOf(*this, newest));
  return CheckpointFile{newest.version, newest.model_hash, std::move(path), newest.bytes.weights,
                        newest.bytes.server_state};
}

}  // namespace terse
