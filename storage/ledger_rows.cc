#include "storage/ledger_rows.h"

#include <string>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "storage/integrity.h"
#include "storage/metric_rows.h"

namespace terse {
namespace run_store_internal {
namespace {

absl::Status AddToRound(SqlDb& db, int64_t round, const ByteSums& sums) {
  return db
      .Prepare(
          "INSERT INTO round_totals (round, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down) "
          "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (round) DO UPDATE SET "
          "dense_up = round_totals.dense_up + excluded.dense_up, payload_up = round_totals.payload_up + "
          "excluded.payload_up, wire_up = round_totals.wire_up + excluded.wire_up, dense_down = "
          "round_totals.dense_down + excluded.dense_down, payload_down = round_totals.payload_down + "
          "excluded.payload_down, wire_down = round_totals.wire_down + excluded.wire_down")
      .Int(round)
      .Int(sums.dense_up)
      .Int(sums.payload_up)
      .Int(sums.wire_up)
      .Int(sums.dense_down)
      .Int(sums.payload_down)
      .Int(sums.wire_down)
      .Run();
}

// The round's newest row, if it is not much longer than `bytes`; it is deleted.
absl::StatusOr<absl::optional<ClientSums>> TakeNewestRow(SqlDb& db, int64_t round, size_t bytes) {
  static const auto& query = *new SqlText(
      SqlCat({"SELECT id, sums, ", HasChecksum("ledger", "ledger"),
              " FROM ledger WHERE id = (SELECT MAX(id) FROM ledger WHERE round = ?) AND length(sums) <= ?"}));
  absl::optional<ClientSums> sums;
  int64_t id = 0;
  {
    Statement row = db.Prepare(query);
    TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(round).Int(2 * static_cast<int64_t>(bytes)).Step());
    if (!found) return sums;
    TERSE_RETURN_IF_ERROR(ExpectChecksum(db, row, 2, "ledger"));
    TERSE_ASSIGN_OR_RETURN(sums, ParseSums(row.GetBlob(1)));
    id = row.GetInt(0);
  }
  TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM ledger WHERE id = ?").Int(id).Run());
  return sums;
}

absl::StatusOr<ClientSums> ReadBlock(SqlDb& db, int64_t block) {
  static const auto& query = *new SqlText(
      SqlCat({"SELECT sums, ", HasChecksum("client_totals", "client_totals"), " FROM client_totals WHERE block = ?"}));
  Statement row = db.Prepare(query);
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Int(block).Step());
  if (!found) return ClientSums();
  TERSE_RETURN_IF_ERROR(ExpectChecksum(db, row, 1, "client_totals"));
  return ParseSums(row.GetBlob(0));
}

// Sums of what is not negative are not, and a name can be found for every client.
absl::Status CheckEntries(SqlDb& db, absl::Span<const LedgerEntry> entries) {
  Statement newest = db.Prepare("SELECT COALESCE(MAX(id), -1) FROM clients");
  TERSE_RETURN_IF_ERROR(newest.Step().status());
  for (const LedgerEntry& entry : entries) {
    const bool counts = entry.dense_bytes >= 0 && entry.payload_bytes >= 0 && entry.wire_bytes >= 0;
    const bool known = entry.client >= 0 && entry.client <= newest.GetInt(0);
    if (counts && known && entry.round >= 0) continue;
    return absl::FailedPreconditionError(absl::StrCat("the ledger cannot hold bytes of client ", entry.client,
                                                      " in round ", entry.round, ": ", entry.dense_bytes, ", ",
                                                      entry.payload_bytes, " and ", entry.wire_bytes));
  }
  return absl::OkStatus();
}

struct Limits {
  int64_t rounds = 0;
  int64_t folded_round = 0;
};

absl::StatusOr<Limits> ReadLimits(SqlDb& db) {
  Statement row = db.Prepare("SELECT rounds, folded_round FROM retention");
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return absl::DataLossError(absl::StrCat(db.place(), " does not say what it keeps", db.remedy()));
  return Limits{row.GetInt(0), row.GetInt(1)};
}

// A coordinator asks for the fate of an update only when it is not its client's last applied one, and when the client's
// prev_applied is that client's last_applied (VerdictOn, coordinator/sessions.cc). Call the row (round r, client c,
// update_id u, prev_applied p). An id is a hash over its round, client, predecessor and message, and CLOSE checks that
// p is the last_applied of c; so p is zero or an id that was made for c, and whoever holds u sealed has p for its
// prev_applied. Which answers change when the row is gone, or is not found?
//
// - r is COMMITTED and p is not zero: none. The commit moved c's last_applied from p on, and it never returns to an id
//   that it had, so c hears APPLIED while it is u, and RESET for its predecessor afterwards. A clone of c's directory
//   under another name d hears RESET for its predecessor too: last_applied of d is zero or an id made for d, never p.
//   For the same reason no d asks for u in the other states, and FateOf looks for the rows of the one who asks.
// - r is COMMITTED and p is zero, the first update of c: a clone under a new name d, whose last_applied is zero, comes
//   as far as asking for the fate, and must hear RESET, because the update is in the model as c's. For these there is
//   `first_updates`, which is looked at whoever asks and keeps a row for each client and lineage.
// - r is ABORTED: the fate is NOT_APPLIED for everybody. Without the row IsOver (coordinator/staleness.cc) decides on
//   the round q <= r for which u was made. It is settled, because r is, so a synchronous run answers NOT_APPLIED. A
//   buffered run does when the head is more than rounds.staleness versions ahead of the weights of q. Those are not
//   newer than the weights of r, of which the head is more than Retention::rounds versions ahead, and that is at least
//   rounds.staleness. For the same reason nobody can have u chosen anew (TakeIn, coordinator/phases/intake.cc). Where
//   more than kRoundsOfFate rounds came after r and the head moved less, all but a few of them were aborted: u is then
//   pending, in no model, and may be chosen anew.
// - r is CLOSED: only the newest round can be, and it is never folded.
//
// So a page of `updates` that is damaged costs nobody an update, and an opening need not read all of them.
//
// Rows of `refused` stay, whatever their round: their clients' last_applied may stand still for ever.
absl::Status DropUpdates(SqlDb& db, int64_t round, bool aborted) {
  if (aborted) {
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM first_updates WHERE round = ?1 AND update_id IN "
                                     "(SELECT update_id FROM updates WHERE round = ?1 AND prev_applied = ?2)")
                              .Int(round)
                              .Id(Id128())
                              .Run());
  }
  return db.Prepare("DELETE FROM updates WHERE round = ?").Int(round).Run();
}

}  // namespace

absl::Status InsertLedgerRow(SqlDb& db, int64_t round, const ClientSums& sums) {
  ClientSums all = sums;
  std::string bytes = SerializeSums(all);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<ClientSums> newest, TakeNewestRow(db, round, bytes.size()));
    if (!newest.has_value()) break;
    AddSums(&all, *newest);
    bytes = SerializeSums(all);
  }
  return db.Prepare("INSERT INTO ledger (id, round, sums) VALUES ((SELECT COALESCE(MAX(id), 0) + 1 FROM ledger), ?, ?)")
      .Int(round)
      .Blob(bytes)
      .Run();
}

absl::Status AddClientTotals(SqlDb& db, const ClientSums& sums) {
  for (auto it = sums.begin(); it != sums.end();) {
    const int64_t block = it->first / kTotalsBlock;
    TERSE_ASSIGN_OR_RETURN(ClientSums totals, ReadBlock(db, block));
    for (; it != sums.end() && it->first / kTotalsBlock == block; ++it) totals[it->first].Add(it->second);
    const std::string bytes = SerializeSums(totals);
    TERSE_RETURN_IF_ERROR(db.Prepare("INSERT INTO client_totals (block, sums) VALUES (?, ?) "
                                     "ON CONFLICT (block) DO UPDATE SET sums = excluded.sums")
                              .Int(block)
                              .Blob(bytes)
                              .Run());
  }
  return absl::OkStatus();
}

absl::Status AddLedgerRows(SqlDb& db, absl::Span<const LedgerEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  TERSE_RETURN_IF_ERROR(CheckEntries(db, entries));
  absl::btree_map<int64_t, ClientSums> rounds;
  for (const LedgerEntry& entry : entries) rounds[entry.round][entry.client].Add(entry);
  TERSE_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(db));
  ClientSums of_clients;
  for (const auto& [round, sums] : rounds) {
    if (round < 1 || round > limits.folded_round) TERSE_RETURN_IF_ERROR(InsertLedgerRow(db, round, sums));
    // Traffic that belongs to no round is in no sum.
    if (round < 1) continue;
    ByteSums of_round;
    for (const auto& [client, bytes] : sums) of_round.Add(bytes);
    TERSE_RETURN_IF_ERROR(AddToRound(db, round, of_round));
    AddSums(&of_clients, sums);
  }
  return AddClientTotals(db, of_clients);
}

absl::Status SetUpdateBytes(SqlDb& db, int64_t round, int64_t bytes) {
  return db
      .Prepare(
          "INSERT INTO round_totals (round, update_bytes) VALUES (?, ?) "
          "ON CONFLICT (round) DO UPDATE SET update_bytes = excluded.update_bytes")
      .Int(round)
      .Int(bytes)
      .Run();
}

absl::Status FoldOldRounds(SqlDb& db, int64_t version) {
  TERSE_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(db));
  if (limits.rounds == 0) return absl::OkStatus();
  int64_t folded = limits.folded_round;
  while (folded < limits.folded_round + kFoldedAtOnce) {
    bool aborted = false;
    {
      Statement next = db.Prepare("SELECT state = 'aborted' FROM rounds WHERE id = ? AND base_version < ?");
      TERSE_ASSIGN_OR_RETURN(const bool is_old, next.Int(folded + 1).Int(version - limits.rounds).Step());
      if (!is_old) break;
      aborted = next.GetInt(0) != 0;
    }
    ++folded;
    TERSE_RETURN_IF_ERROR(db.Prepare("DELETE FROM ledger WHERE round = ?").Int(folded).Run());
    TERSE_RETURN_IF_ERROR(DropUpdates(db, folded, aborted));
    TERSE_RETURN_IF_ERROR(DropClientMetrics(db, folded));
  }
  if (folded == limits.folded_round) return absl::OkStatus();
  return db.Prepare("UPDATE retention SET folded_round = ?").Int(folded).Run();
}

}  // namespace run_store_internal

}  // namespace terse
