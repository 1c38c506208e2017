// The settings of what is kept, and the reads of the ledger and its sums.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/sqlite_run_store.h"

namespace terse {

absl::Status SqliteRunStore::SetRetention(const Retention& retention) {
  if (retention.rounds < 0 || retention.events < 0) {
    return absl::InvalidArgumentError("a run keeps no negative number of rounds or events");
  }
  bool is_set = false;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    Statement row = db.Prepare("SELECT 1 FROM retention WHERE rounds = ? AND events = ?");
    TERSE_ASSIGN_OR_RETURN(is_set, row.Int(retention.rounds).Int(retention.events).Step());
    return absl::OkStatus();
  }));
  if (is_set) return absl::OkStatus();
  return Write([&](SqliteDb& db) {
    return db.Prepare("UPDATE retention SET rounds = ?, events = ?").Int(retention.rounds).Int(retention.events).Run();
  });
}

absl::StatusOr<std::vector<LedgerEntry>> SqliteRunStore::Ledger(int64_t first_round, int64_t last_round) {
  // 'up' before 'down', as in the enumeration.
  static const auto& select = *new std::string(absl::StrCat(
      "SELECT l.round, l.client, l.direction = 'up', l.dense_bytes, l.payload_bytes, l.wire_bytes, c.name, ",
      HasChecksum("ledger", "l"),
      " FROM ledger l JOIN clients c ON c.id = l.client "
      "WHERE l.round BETWEEN ? AND ? ORDER BY l.round, l.client, l.direction DESC"));
  std::vector<LedgerEntry> entries;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    Statement rows = db.Prepare(select);
    rows.Int(first_round).Int(last_round);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 7, "ledger"));
      const Direction direction = rows.GetInt(2) != 0 ? Direction::kUp : Direction::kDown;
      entries.push_back({rows.GetInt(0), rows.GetInt(1), direction, rows.GetInt(3), rows.GetInt(4), rows.GetInt(5),
                         std::string(rows.GetText(6))});
    }
  }));
  return entries;
}

absl::StatusOr<std::vector<LedgerEntry>> SqliteRunStore::ClientTotals() {
  std::vector<LedgerEntry> totals;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    Statement rows = db.Prepare(
        "SELECT t.client, t.dense_up, t.payload_up, t.wire_up, t.dense_down, t.payload_down, t.wire_down, c.name "
        "FROM client_totals t JOIN clients c ON c.id = t.client ORDER BY t.client");
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      for (const Direction direction : {Direction::kUp, Direction::kDown}) {
        const int first = direction == Direction::kUp ? 1 : 4;
        LedgerEntry total{0,
                          rows.GetInt(0),
                          direction,
                          rows.GetInt(first),
                          rows.GetInt(first + 1),
                          rows.GetInt(first + 2),
                          std::string(rows.GetText(7))};
        const bool any = total.dense_bytes != 0 || total.payload_bytes != 0 || total.wire_bytes != 0;
        if (any) totals.push_back(std::move(total));
      }
    }
  }));
  return totals;
}

}  // namespace terse
