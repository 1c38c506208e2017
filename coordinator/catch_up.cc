#include "coordinator/catch_up.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/epochs.h"
#include "core/status.h"

namespace terse {
namespace {

// The messages that lead from version `after` towards `up_to`: as many as have run.catch_up_bytes together, but at
// least one. OUT_OF_RANGE when the log does not reach back so far.
absl::StatusOr<std::vector<Downstream>> ReadLog(EngineState& run, int64_t after, int64_t up_to) {
  std::vector<Downstream> log;
  if (run.model.recent().ReachesBackTo(after)) {
    int64_t room = run.catch_up_bytes;
    for (int64_t version = after + 1; version <= up_to; ++version) {
      const RecentLog::Entry& entry = run.model.recent().At(version);
      const int64_t bytes = static_cast<int64_t>(entry.message->size());
      if (!log.empty() && bytes > room) break;
      room -= bytes;
      log.push_back({version, entry.model_hash, entry.message});
    }
    return log;
  }
  TERSE_ASSIGN_OR_RETURN(std::vector<LogMessage> stored, run.store()->ReadLogPart(after, up_to, run.catch_up_bytes));
  for (LogMessage& one : stored) {
    log.push_back({one.version, one.model_hash, std::make_shared<const std::string>(std::move(one.downstream))});
  }
  return log;
}

absl::StatusOr<int64_t> LogBytes(EngineState& run, int64_t after) {
  if (run.model.recent().ReachesBackTo(after)) return run.model.recent().BytesAfter(after);
  return run.store()->LogBytes(after);
}

// The log of the versions after `after` up to `up_to`, or its first part: what waits for one client is bounded, and
// more of it follows when that has left (BringUp).
absl::Status SendLog(EngineState& run, Session& session, int64_t after, int64_t up_to) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<Downstream> log, ReadLog(run, after, up_to));
  run.fleet.SetVersion(session, log.empty() ? up_to : log.back().version);
  for (const Downstream& downstream : log) {
    run.book().AddDown(session.client(), static_cast<int64_t>(downstream.message->size()), 0);
    run.journal.Say(session.link, downstream);
  }
  run.fleet.SetDraining(session, session.version() < up_to);
  if (session.draining()) run.journal.TellWhenDrained(session.link);
  return absl::OkStatus();
}

// How a client gets from its version to the head.
enum class Way { kLog, kCheckpoint, kNewerCheckpoint };

// The log where it leads from `version` to the head and is cheaper than the newest checkpoint and the log after that.
// Where either leaves more of the log than may be sent, a checkpoint of the head is to be written first.
absl::StatusOr<Way> WayFrom(EngineState& run, int64_t version) {
  const absl::StatusOr<int64_t> log_bytes = LogBytes(run, version);
  const bool has_log = !absl::IsOutOfRange(log_bytes.status());
  if (has_log && !log_bytes.ok()) return log_bytes.status();
  const bool may_send = has_log && *log_bytes <= run.most_log_bytes;
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store()->NewestCheckpointFile());
  // A client that already holds the checkpoint's version or a newer one gains nothing from downloading it.
  if (has_log && version >= file.version) return may_send ? Way::kLog : Way::kNewerCheckpoint;
  const absl::StatusOr<int64_t> log_after_file = LogBytes(run, file.version);
  if (absl::IsOutOfRange(log_after_file.status())) return Way::kCheckpoint;  // a newer one replaced it just now
  if (!log_after_file.ok()) return log_after_file.status();
  if (may_send && *log_bytes <= file.bytes + *log_after_file) return Way::kLog;
  return *log_after_file <= run.most_log_bytes ? Way::kCheckpoint : Way::kNewerCheckpoint;
}

}  // namespace

absl::Status SendResync(EngineState& run, Session& session, const std::string& reason) {
  TERSE_ASSIGN_OR_RETURN(const RunStore::CheckpointFile file, run.store()->NewestCheckpointFile());
  run.fleet.SetVersion(session, absl::nullopt);
  run.book().AddDown(session.client(), file.bytes, 0);
  run.journal.Say(session.link, Resync{file.version, reason});
  return absl::OkStatus();
}

absl::Status SendModels(EngineState& run, Session& session, int64_t version) {
  const int64_t snapshot = SnapshotBefore(*run.config, run.model.head().version);
  if (version < snapshot) {
    const absl::Status sent = SendLog(run, session, snapshot - 1, snapshot);
    // Then the newest checkpoint is this snapshot.
    if (absl::IsOutOfRange(sent)) return SendResync(run, session, "the log begins with the epoch's snapshot");
    TERSE_RETURN_IF_ERROR(sent);
  }
  if (std::max(version, snapshot) < run.model.head().version) {
    TERSE_RETURN_IF_ERROR(SendLog(run, session, run.model.head().version - 1, run.model.head().version));
  }
  run.fleet.SetVersion(session, run.model.head().version);
  return absl::OkStatus();
}

absl::Status CatchUp(EngineState& run, Session& session, int64_t version) {
  run.fleet.SetAwaitsCheckpoint(session, false);
  if (version == run.model.head().version) {
    run.fleet.SetDraining(session, false);
    run.fleet.SetVersion(session, version);
    return absl::OkStatus();
  }
  if (HasEpochs(*run.config)) return SendModels(run, session, version);
  TERSE_ASSIGN_OR_RETURN(const Way way, WayFrom(run, version));
  if (way == Way::kNewerCheckpoint) {
    run.fleet.SetVersion(session, version);
    run.fleet.SetAwaitsCheckpoint(session, true);
    run.BeginCheckpoint();
    return absl::OkStatus();
  }
  if (way == Way::kLog) {
    const absl::Status sent = SendLog(run, session, version, run.model.head().version);
    // A checkpoint that was just written may have cut the log off in between.
    if (!absl::IsOutOfRange(sent)) return sent;
  }
  return SendResync(run, session, absl::StrCat("version ", version, " is too old"));
}

absl::Status BringUp(EngineState& run, Session& session) {
  if (session.draining() || !session.version().has_value()) return absl::OkStatus();
  if (*session.version() >= run.model.head().version) return absl::OkStatus();
  return CatchUp(run, session, *session.version());
}

}  // namespace terse
