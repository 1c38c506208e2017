// The settings of what is kept, and the reads of the ledger and its sums.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/client_sums.h"
#include "storage/integrity.h"
#include "storage/metric_rows.h"
#include "storage/sql_run_store.h"

namespace terse {

absl::Status SqlRunStore::SetRetention(const Retention& retention) {
  if (retention.rounds < 0 || retention.events < 0) {
    return absl::InvalidArgumentError("a run keeps no negative number of rounds or events");
  }
  bool is_set = false;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    Statement row = db.Prepare("SELECT 1 FROM retention WHERE rounds = ? AND events = ?");
    TERSE_ASSIGN_OR_RETURN(is_set, row.Int(retention.rounds).Int(retention.events).Step());
    return absl::OkStatus();
  }));
  if (is_set) return absl::OkStatus();
  return Write([&](SqlDb& db) {
    return db.Prepare("UPDATE retention SET rounds = ?, events = ?").Int(retention.rounds).Int(retention.events).Run();
  });
}

namespace {

absl::StatusOr<std::vector<std::string>> ClientNames(SqlDb& db) {
  std::vector<std::string> names;
  Statement rows = db.Prepare("SELECT name FROM clients ORDER BY id");
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return names;
    names.emplace_back(rows.GetText(0));
  }
}

// Appends what is not zero, 'up' before 'down'.
absl::Status AppendEntries(const SqlDb& db, int64_t round, const ClientSums& sums,
                           const std::vector<std::string>& names, std::vector<LedgerEntry>* entries) {
  const auto append = [&](int64_t client, Direction direction, int64_t dense, int64_t payload, int64_t wire) {
    if (dense == 0 && payload == 0 && wire == 0) return;
    entries->push_back({round, client, direction, dense, payload, wire, names[static_cast<size_t>(client)]});
  };
  for (const auto& [client, bytes] : sums) {
    if (client >= static_cast<int64_t>(names.size())) {
      return absl::DataLossError(
          absl::StrCat(db.place(), " has bytes of client ", client, ", and ", names.size(), " clients", db.remedy()));
    }
    append(client, Direction::kUp, bytes.dense_up, bytes.payload_up, bytes.wire_up);
    append(client, Direction::kDown, bytes.dense_down, bytes.payload_down, bytes.wire_down);
  }
  return absl::OkStatus();
}

absl::Status AddBytes(SqlDb& db, RunTotals* totals) {
  static const auto& select =
      *new SqlText(SqlCat({"SELECT sums, ", HasChecksum("client_totals", "client_totals"), " FROM client_totals"}));
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

// The rows of the newest evaluation and of the best ones, of the first round and of the newest commit: of each its
// results, a point in time, and whether the row is whole.
SqlText ResultsQuery() {
  const SqlText whole = HasChecksum("rounds", "rounds");
  return SqlCat(
      {"SELECT * FROM (SELECT 0, accuracy, test_loss, opened_us, ", whole,
       " FROM rounds WHERE accuracy IS NOT NULL OR test_loss IS NOT NULL ORDER BY id DESC LIMIT 1) AS newest UNION ALL "
       "SELECT * FROM (SELECT 1, accuracy, test_loss, opened_us, ",
       whole,
       " FROM rounds WHERE accuracy IS NOT NULL ORDER BY accuracy DESC LIMIT 1) AS best UNION ALL "
       "SELECT * FROM (SELECT 2, accuracy, test_loss, opened_us, ",
       whole,
       " FROM rounds WHERE test_loss IS NOT NULL ORDER BY test_loss LIMIT 1) AS lowest UNION ALL "
       "SELECT * FROM (SELECT 3, accuracy, test_loss, opened_us, ",
       whole,
       " FROM rounds ORDER BY id LIMIT 1) AS first UNION ALL "
       "SELECT * FROM (SELECT 4, accuracy, test_loss, settled_us, ",
       whole, " FROM rounds WHERE state = 'committed' ORDER BY id DESC LIMIT 1) AS committed"});
}

absl::Status AddResults(SqlDb& db, RunTotals* totals) {
  static const auto& select = *new SqlText(ResultsQuery());
  Statement rows = db.Prepare(select);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, rows, 4, "rounds"));
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
        totals->first_opened_us = rows.GetInt(3);
        break;
      default:
        totals->last_committed_us = rows.GetInt(3);
    }
  }
}

}  // namespace

absl::StatusOr<RunTotals> SqlRunStore::Totals() {
  RunTotals totals;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
    TERSE_RETURN_IF_ERROR(AddBytes(db, &totals));
    return AddResults(db, &totals);
  }));
  return totals;
}

absl::StatusOr<std::vector<LedgerEntry>> SqlRunStore::Ledger(int64_t first_round, int64_t last_round) {
  static const auto& select = *new SqlText(SqlCat({"SELECT round, sums, ", HasChecksum("ledger", "ledger"),
                                                   " FROM ledger WHERE round BETWEEN ? AND ? ORDER BY round"}));
  std::vector<LedgerEntry> entries;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
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

absl::StatusOr<std::vector<ClientMetrics>> SqlRunStore::MetricsOfClients(int64_t first_round, int64_t last_round) {
  std::vector<ClientMetrics> metrics;
  TERSE_RETURN_IF_ERROR(
      Read([&](SqlDb& db) { return run_store_internal::ReadClientMetrics(db, first_round, last_round, &metrics); }));
  return metrics;
}

absl::StatusOr<std::vector<LedgerEntry>> SqlRunStore::ClientTotals() {
  static const auto& select = *new SqlText(
      SqlCat({"SELECT sums, ", HasChecksum("client_totals", "client_totals"), " FROM client_totals ORDER BY block"}));
  std::vector<LedgerEntry> totals;
  TERSE_RETURN_IF_ERROR(Read([&](SqlDb& db) -> absl::Status {
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
