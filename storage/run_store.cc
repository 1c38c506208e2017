// Opening a store does this on every engine; and the names of states.
#include "storage/run_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/fault.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/sql_run_store.h"

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

namespace {

// Whether the run is a relay's. Its CLOSED round may be part of the relay's own update, which the relay alone knows.
absl::StatusOr<bool> IsRelay(SqlDb& db) {
  Statement row = db.Prepare("SELECT 1 FROM relay");
  return row.Step();
}

// The updates of a CLOSED round died with the process; the round ends without them, and its clients fold their work
// forward.
absl::Status AbortClosedRounds(SqlDb& db) {
  TERSE_ASSIGN_OR_RETURN(const bool relay, IsRelay(db));
  if (relay) return absl::OkStatus();
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

}  // namespace

int64_t run_store_internal::NowUs() { return absl::GetCurrentTimeNanos() / 1000; }

absl::StatusOr<int64_t> run_store_internal::TakeOver(SqlDb& db, absl::FunctionRef<absl::Status()> afterwards) {
  int64_t epoch = 0;
  TERSE_RETURN_IF_ERROR(db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(
        db.Prepare("UPDATE head SET epoch = epoch + 1").RunForOne(absl::StrCat(db.place(), " has no head row")));
    TERSE_ASSIGN_OR_RETURN(const Head head, SelectHead(db));
    epoch = head.epoch;
    TERSE_RETURN_IF_ERROR(AbortClosedRounds(db));
    return afterwards();
  }));
  return epoch;
}

absl::Status run_store_internal::BeginLineage(SqlDb& db, const absl::Status& no_run) {
  EventRecord event;
  event.time_us = NowUs();
  event.kind = event::kLineageStarted;
  event.detail = "the run goes on from a copy; every client starts without a past";
  return db.InTransaction([&]() -> absl::Status {
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE runs SET lineage = ? WHERE id = 1").Id(Id128::Random()).Run());
    TERSE_ASSIGN_OR_RETURN(const int64_t changes, db.Changes());
    if (changes != 1) return no_run;
    TERSE_RETURN_IF_ERROR(db.Prepare("UPDATE clients SET last_applied = ?").Id(Id128()).Run());
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM histories").Run());
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM history_log").Run());
    // A relay's may be CLOSED. Its updates follow ids that no client has any more.
    for (const RoundState state : {RoundState::kOpen, RoundState::kClosed}) {
      TERSE_RETURN_IF_ERROR(AbortRounds(db, state, "the run goes on from a copy"));
    }
    return InsertEvent(db, event);
  });
}

SqlRunStore::SqlRunStore(Parts parts)
    : place_(std::move(parts.place)),
      remedy_(parts.writer->remedy()),
      epoch_(parts.epoch),
      writer_(std::move(parts.writer)),
      messages_(std::move(parts.messages)),
      checkpoints_(std::move(parts.checkpoints)),
      readers_(std::move(parts.reader), std::move(parts.open_reader)) {}

absl::Status SqlRunStore::Watch(const absl::Status& status) {
  if (IsSyncFailure(status)) {
    absl::MutexLock lock(&write_mutex_);
    writer_->Break(status);
  }
  return status;
}

}  // namespace terse
