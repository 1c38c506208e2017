// The ledger, the sums that outlive its rows, and which rows of old rounds a run keeps. Internal to storage/; every
// function is part of its caller's transaction, and returns the statuses of SqlDb.
#ifndef TERSE_STORAGE_LEDGER_ROWS_H_
#define TERSE_STORAGE_LEDGER_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/client_sums.h"
#include "storage/run_store.h"
#include "storage/sql_db.h"

namespace terse {
namespace run_store_internal {

// Clients whose totals are one row.
inline constexpr int64_t kTotalsBlock = 128;

// A row of the ledger holds bytes of one round, of all clients at once. It takes in those before it that are not much
// longer, so that a round has few rows, and what comes in many parts, as while a run is paused, is written a few times.
absl::Status InsertLedgerRow(SqlDb& db, int64_t round, const ClientSums& sums);
absl::Status AddClientTotals(SqlDb& db, const ClientSums& sums);

// Adds a row to the ledger for each round, and to the sums of rounds and clients. A round that was folded has only
// sums. FAILED_PRECONDITION for bytes below 0, and for a client that is not registered.
absl::Status AddLedgerRows(SqlDb& db, absl::Span<const LedgerEntry> entries);

// Notes the payload of all updates that the round chose.
absl::Status SetUpdateBytes(SqlDb& db, int64_t round, int64_t bytes);

// Folds rounds that Retention::rounds no longer covers now that `version` is the head: deletes their rows of the
// ledger, of `updates` and of `update_metrics`, which no answer of the update protocol needs. At most kFoldedAtOnce of
// them, so that a commit does a bounded piece of work also after the setting was lowered.
absl::Status FoldOldRounds(SqlDb& db, int64_t version);
inline constexpr int kFoldedAtOnce = 4;

}  // namespace run_store_internal
}  // namespace terse

#endif  // TERSE_STORAGE_LEDGER_ROWS_H_
