// The settings of what is kept, and the reads of the ledger and its sums.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/client_sums.h"
#include "storage/integrity.h"
#include "storage/metric_rows.h"
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

namespace {

absl::StatusOr<std::vector<std::string>> ClientNames(SqliteDb& db) {
  std::vector<std::string> names;
  Statement rows = db.Prepare("SELECT name FROM clients ORDER BY id");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return names;
    names.emplace_back(rows.GetText(0));
  }
}

// Appends what is not zero, 'up' before 'down'.
absl::Status AppendEntries(const SqliteDb& db, int64_t round, const ClientSums& sums,
                           const std::vector<std::string>& names, std::vector<LedgerEntry>* entries) {
  const auto append = [&](int64_t client, Direction direction, int64_t dense, int64_t payload, int64_t wire) {
    if (dense == 0 && payload == 0 && wire == 0) return;
    entries->push_back({round, client, direction, dense, payload, wire, names[static_cast<size_t>(client)]});
  };
  for (const auto& [client, bytes] : sums) {
    if (client >= static_cast<int64_t>(names.size())) {
      return absl::DataLossError(absl::StrCat(db.path(), " has bytes of client ", client, ", and ", names.size(),
                                              " clients", kDatabaseRemedy));
    }
    append(client, Direction::kUp, bytes.dense_up, bytes.payload_up, bytes.wire_up);
    append(client, Direction::kDown, bytes.dense_down, bytes.payload_down, bytes.wire_down);
  }
  return absl::OkStatus();
}

absl::Status AddBytes(SqliteDb& db, RunTotals* totals) {
  static const auto& select = *new std::string(
      absl::StrCat("SELECT sums, ", HasChecksum("client_totals", "client_totals"), " FROM client_totals"));
  Statement rows = db.Prepare(select);
  ByteSums all;
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 1, "client_totals"));
    TERSE_ASSIGN_OR_RETURN(const ClientSums block, ParseSums(rows.GetBlob(0)));
    for (const auto& [client, bytes] : block) all.Add(bytes);
  }
  totals->dense_bytes_up = all.dense_up;
  totals->payload_bytes_up = all.payload_up;
  totals->wire_bytes_up = all.wire_up;
  totals->dense_bytes_down = all.dense_down;
  totals->payload_bytes_down = all.payload_down;
  totals->wire_bytes_down = all.wire_down;
  return absl::OkStatus();
}

// The rows of the newest evaluation and of the best ones, of the first round and of the newest commit: of each the
// result or time, and whether the row is whole.
std::string ResultsQuery() {
  const std::string whole = HasChecksum("rounds", "rounds");
  return absl::StrCat(
      "SELECT * FROM (SELECT 0, accuracy, test_loss, ", whole,
      " FROM rounds WHERE accuracy IS NOT NULL OR test_loss IS NOT NULL ORDER BY id DESC LIMIT 1) UNION ALL "
      "SELECT * FROM (SELECT 1, MAX(accuracy), NULL, ",
      whole, " FROM rounds) UNION ALL SELECT * FROM (SELECT 2, NULL, MIN(test_loss), ", whole,
      " FROM rounds) UNION ALL SELECT * FROM (SELECT 3, opened_us, NULL, ", whole,
      " FROM rounds ORDER BY id LIMIT 1) UNION ALL SELECT * FROM (SELECT 4, settled_us, NULL, ", whole,
      " FROM rounds WHERE state = 'committed' ORDER BY id DESC LIMIT 1)");
}

absl::Status AddResults(SqliteDb& db, RunTotals* totals) {
  static const auto& select = *new std::string(ResultsQuery());
  Statement rows = db.Prepare(select);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    // An aggregate over no rounds has a row, too.
    if (rows.IsNull(1) && rows.IsNull(2)) continue;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 3, "rounds"));
    switch (rows.GetInt(0)) {
      case 0:
        totals->accuracy = run_store_internal::OptionalReal(rows, 1);
        totals->test_loss = run_store_internal::OptionalReal(rows, 2);
        break;
      case 1:
        totals->best_accuracy = rows.GetReal(1);
        break;
      case 2:
        totals->best_test_loss = rows.GetReal(2);
        break;
      case 3:
        totals->first_opened_us = rows.GetInt(1);
        break;
      default:
        totals->last_committed_us = rows.GetInt(1);
    }
  }
}

}  // namespace

absl::StatusOr<RunTotals> SqliteRunStore::Totals() {
  RunTotals totals;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(AddBytes(db, &totals));
    return AddResults(db, &totals);
  }));
  return totals;
}

absl::StatusOr<std::vector<LedgerEntry>> SqliteRunStore::Ledger(int64_t first_round, int64_t last_round) {
  static const auto& select = *new std::string(absl::StrCat("SELECT round, sums, ", HasChecksum("ledger", "ledger"),
                                                            " FROM ledger WHERE round BETWEEN ? AND ? ORDER BY round"));
  std::vector<LedgerEntry> entries;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ClientNames(db));
    Statement rows = db.Prepare(select);
    rows.Int(first_round).Int(last_round);
    int64_t round = first_round;
    ClientSums of_round;
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row || rows.GetInt(0) != round) {
        TERSE_RETURN_IF_ERROR(AppendEntries(db, round, of_round, names, &entries));
        of_round.clear();
      }
      if (!row) return absl::OkStatus();
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 2, "ledger"));
      round = rows.GetInt(0);
      TERSE_ASSIGN_OR_RETURN(const ClientSums part, ParseSums(rows.GetBlob(1)));
      AddSums(&of_round, part);
    }
  }));
  return entries;
}

absl::StatusOr<std::vector<ClientMetrics>> SqliteRunStore::MetricsOfClients(int64_t first_round, int64_t last_round) {
  std::vector<ClientMetrics> metrics;
  TERSE_RETURN_IF_ERROR(
      Read([&](SqliteDb& db) { return run_store_internal::ReadClientMetrics(db, first_round, last_round, &metrics); }));
  return metrics;
}

absl::StatusOr<std::vector<LedgerEntry>> SqliteRunStore::ClientTotals() {
  static const auto& select = *new std::string(absl::StrCat(
      "SELECT sums, ", HasChecksum("client_totals", "client_totals"), " FROM client_totals ORDER BY block"));
  std::vector<LedgerEntry> totals;
  TERSE_RETURN_IF_ERROR(Read([&](SqliteDb& db) -> absl::Status {
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ClientNames(db));
    Statement rows = db.Prepare(select);
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 1, "client_totals"));
      TERSE_ASSIGN_OR_RETURN(const ClientSums block, ParseSums(rows.GetBlob(0)));
      TERSE_RETURN_IF_ERROR(AppendEntries(db, 0, block, names, &totals));
    }
  }));
  return totals;
}

}  // namespace terse
