#include "storage/ledger_rows.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace run_store_internal {
namespace {

// Bytes of both directions, in the order of the columns of `round_totals` and `client_totals`.
struct ByteSums {
  int64_t dense_up = 0, payload_up = 0, wire_up = 0;
  int64_t dense_down = 0, payload_down = 0, wire_down = 0;

  void Add(const LedgerEntry& entry) {
    const bool up = entry.direction == Direction::kUp;
    (up ? dense_up : dense_down) += entry.dense_bytes;
    (up ? payload_up : payload_down) += entry.payload_bytes;
    (up ? wire_up : wire_down) += entry.wire_bytes;
  }
};

constexpr char kAddToRound[] =
    "INSERT INTO round_totals (round, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (round) DO UPDATE SET "
    "dense_up = dense_up + excluded.dense_up, payload_up = payload_up + excluded.payload_up, "
    "wire_up = wire_up + excluded.wire_up, dense_down = dense_down + excluded.dense_down, "
    "payload_down = payload_down + excluded.payload_down, wire_down = wire_down + excluded.wire_down";

constexpr char kAddToClient[] =
    "INSERT INTO client_totals (client, dense_up, payload_up, wire_up, dense_down, payload_down, wire_down) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (client) DO UPDATE SET "
    "dense_up = dense_up + excluded.dense_up, payload_up = payload_up + excluded.payload_up, "
    "wire_up = wire_up + excluded.wire_up, dense_down = dense_down + excluded.dense_down, "
    "payload_down = payload_down + excluded.payload_down, wire_down = wire_down + excluded.wire_down";

absl::Status AddSums(SqliteDb& db, const char* sql, int64_t key, const ByteSums& sums) {
  return db.Prepare(sql)
      .Int(key)
      .Int(sums.dense_up)
      .Int(sums.payload_up)
      .Int(sums.wire_up)
      .Int(sums.dense_down)
      .Int(sums.payload_down)
      .Int(sums.wire_down)
      .Run();
}

absl::Status AddRow(SqliteDb& db, const LedgerEntry& entry) {
  return db
      .Prepare(
          "INSERT INTO ledger (round, client, direction, dense_bytes, payload_bytes, wire_bytes) "
          "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (round, client, direction) DO UPDATE SET "
          "dense_bytes = dense_bytes + excluded.dense_bytes, payload_bytes = payload_bytes + excluded.payload_bytes, "
          "wire_bytes = wire_bytes + excluded.wire_bytes")
      .Int(entry.round)
      .Int(entry.client)
      .Text(entry.direction == Direction::kUp ? "up" : "down")
      .Int(entry.dense_bytes)
      .Int(entry.payload_bytes)
      .Int(entry.wire_bytes)
      .Run();
}

struct Limits {
  int64_t rounds = 0;
  int64_t folded_round = 0;
};

absl::StatusOr<Limits> ReadLimits(SqliteDb& db) {
  Statement row = db.Prepare("SELECT rounds, folded_round FROM retention");
  TERSE_ASSIGN_OR_RETURN(const bool found, row.Step());
  if (!found) return absl::DataLossError(absl::StrCat(db.path(), " does not say what it keeps", kDatabaseRemedy));
  return Limits{row.GetInt(0), row.GetInt(1)};
}

// A coordinator asks for the fate of an update only when it is not its client's last applied one, and when the client's
// prev_applied is that client's last_applied (VerdictOn, coordinator/sessions.cc). Call the row (round r, client c,
// update_id u, prev_applied p). An id is a hash over its client, its predecessor and its message, and CLOSE checks that
// p is the last_applied of c; so p is zero or an id that was made for c, and whoever holds u sealed has p for its
// prev_applied. Which answers change when the row is gone:
//
// - r is COMMITTED and p is not zero: none. The commit moved c's last_applied from p on, and it never returns to an id
//   that it had, so c hears APPLIED while it is u, and RESET for its predecessor afterwards. A clone of c's directory
//   under another name d hears RESET for its predecessor too: last_applied of d is zero or an id made for d, never p.
// - r is COMMITTED and p is zero, the first update of c: a clone under a new name d, whose last_applied is zero, comes
// as
//   far as asking for the fate, and must hear RESET, because the update is in the model as c's. Such rows stay: one for
//   each client and lineage.
// - r is ABORTED: the fate is NOT_APPLIED for everybody. Without the row IsOver (coordinator/staleness.cc) decides
// about
//   the round q <= r for which u was made. It is settled, because r is, so a synchronous run answers NOT_APPLIED. A
//   buffered run does when the head is more than rounds.staleness versions ahead of the weights of q. Those are not
//   newer than the weights of r, of which the head is more than Retention::rounds versions ahead, and that is at least
//   rounds.staleness. For the same reason nobody can have u chosen anew (TakeIn, coordinator/phases/intake.cc).
// - r is CLOSED: only the newest round can be, and it is never folded.
//
// Rows of `refused` stay, whatever their round: their clients' last_applied may stand still for ever.
absl::Status DropUpdates(SqliteDb& db, int64_t round, bool aborted) {
  if (aborted) return db.Prepare("DELETE FROM updates WHERE round = ?").Int(round).Run();
  return db.Prepare("DELETE FROM updates WHERE round = ? AND prev_applied <> zeroblob(16)").Int(round).Run();
}

}  // namespace

absl::Status AddLedgerRows(SqliteDb& db, absl::Span<const LedgerEntry> entries) {
  if (entries.empty()) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const Limits limits, ReadLimits(db));
  std::map<int64_t, ByteSums> rounds;
  ByteSums of_client;
  for (size_t i = 0; i < entries.size(); ++i) {
    const LedgerEntry& entry = entries[i];
    if (entry.round < 1 || entry.round > limits.folded_round) TERSE_RETURN_IF_ERROR(AddRow(db, entry));
    // Traffic that belongs to no round is in no sum.
    if (entry.round < 1) continue;
    rounds[entry.round].Add(entry);
    of_client.Add(entry);
    const bool more = i + 1 < entries.size() && entries[i + 1].client == entry.client && entries[i + 1].round >= 1;
    if (more) continue;
    TERSE_RETURN_IF_ERROR(AddSums(db, kAddToClient, entry.client, of_client));
    of_client = {};
  }
  for (const auto& [round, sums] : rounds) TERSE_RETURN_IF_ERROR(AddSums(db, kAddToRound, round, sums));
  return absl::OkStatus();
}

absl::Status SetUpdateBytes(SqliteDb& db, int64_t round, int64_t bytes) {
  return db
      .Prepare(
          "INSERT INTO round_totals (round, update_bytes) VALUES (?, ?) "
          "ON CONFLICT (round) DO UPDATE SET update_bytes = excluded.update_bytes")
      .Int(round)
      .Int(bytes)
      .Run();
}

absl::Status FoldOldRounds(SqliteDb& db, int64_t version) {
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
  }
  if (folded == limits.folded_round) return absl::OkStatus();
  return db.Prepare("UPDATE retention SET folded_round = ?").Int(folded).Run();
}

}  // namespace run_store_internal

}  // namespace terse
