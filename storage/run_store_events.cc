// The events of a run, and the rounds that are aborted, each with its event.
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/event_kinds.h"
#include "storage/sql_run_store.h"

namespace terse {

absl::Status run_store_internal::InsertEvent(SqlDb& db, const EventRecord& event) {
  TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO events (id, time_us, kind, round, client, detail) "
                                   "VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM events), ?, ?, ?, ?, ?)")
                            .Int(event.time_us)
                            .Text(event.kind)
                            .Int(event.round)
                            .Int(event.client)
                            .Text(event.detail)
                            .Run());
  // Ids have no gaps, so the ones to forget are the first of the table. The newest event stays, and with it the order
  // of ids. One event forgets several, so a limit that was lowered is reached without a long transaction.
  return db
      .Prepare(
          "DELETE FROM events WHERE id IN (SELECT e.id FROM retention r CROSS JOIN events e "
          "WHERE r.events > 0 AND e.id <= (SELECT MAX(id) FROM events) - r.events ORDER BY e.id LIMIT 16)")
      .Run();
}

absl::Status run_store_internal::AbortRounds(SqlDb& db, RoundState state, const std::string& reason) {
  std::vector<int64_t> rounds;
  {
    Statement rows = db.Prepare("SELECT id FROM rounds WHERE state = ?");
    rows.Text(RoundStateName(state));
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) break;
      rounds.push_back(rows.GetInt(0));
    }
  }
  for (int64_t round : rounds) TERSE_RETURN_IF_ERROR(MarkAborted(db, round, reason, NowUs()));
  return absl::OkStatus();
}

absl::Status run_store_internal::MarkAborted(SqlDb& db, int64_t round, const std::string& reason, int64_t now_us) {
  TERSE_RETURN_IF_ERROR(
      db.Prepare("UPDATE rounds SET state = 'aborted', settled_us = ? WHERE id = ? AND state IN ('open', 'closed')")
          .Int(now_us)
          .Int(round)
          .RunForOne(absl::StrCat("round ", round, " is neither open nor closed and cannot be aborted")));
  EventRecord event;
  event.time_us = now_us;
  event.kind = event::kRoundAborted;
  event.round = round;
  event.detail = reason;
  return InsertEvent(db, event);
}

}  // namespace terse
