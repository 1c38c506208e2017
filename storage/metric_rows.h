// The named metrics of rounds and of their clients' updates. Internal to storage/; every function is part of its
// caller's transaction or snapshot, and returns the statuses of SqlDb.
#ifndef TERSE_STORAGE_METRIC_ROWS_H_
#define TERSE_STORAGE_METRIC_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/run_records.h"
#include "storage/sql_db.h"

namespace terse {
namespace run_store_internal {

// Stores the metrics of the updates that the round chose, and their means.
absl::Status InsertMetrics(SqlDb& db, int64_t round, absl::Span<const ChosenUpdate> chosen);

// Stores those of the round's evaluation in place of earlier ones.
absl::Status ReplaceTestMetrics(SqlDb& db, int64_t round, absl::Span<const NamedMetric> metrics);

// Adds the means to `rounds`, which are consecutive and in order.
absl::Status ReadMeans(SqlDb& db, std::vector<RoundRecord>* rounds);

// The metrics of single clients, ordered by round and client; names are filled in.
absl::Status ReadClientMetrics(SqlDb& db, int64_t first_round, int64_t last_round, std::vector<ClientMetrics>* metrics);

// Deletes the metrics of the round's single clients; the means stay.
absl::Status DropClientMetrics(SqlDb& db, int64_t round);

}  // namespace run_store_internal
}  // namespace terse

#endif  // TERSE_STORAGE_METRIC_ROWS_H_
