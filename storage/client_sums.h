// Bytes of a run's clients in both directions, as rows of the ledger and of `client_totals` hold them:
// storage/SCHEMA.md, "Bytes of clients". Internal to storage/; thread-compatible.
#ifndef TERSE_STORAGE_CLIENT_SUMS_H_
#define TERSE_STORAGE_CLIENT_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/run_records.h"

namespace terse {

// Each as the field of LedgerEntry, of one direction.
struct ByteSums {
  int64_t dense_up = 0, payload_up = 0, wire_up = 0;
  int64_t dense_down = 0, payload_down = 0, wire_down = 0;

  void Add(const LedgerEntry& entry);
  void Add(const ByteSums& other);
};

using ClientSums = absl::btree_map<int64_t, ByteSums>;

// Adds all of `more` to the sums of its clients.
void AddSums(ClientSums* sums, const ClientSums& more);

// Clients and sums are not negative.
std::string SerializeSums(const ClientSums& sums);

// DATA_LOSS when `bytes` end within a client, or hold a number that is too large.
absl::StatusOr<ClientSums> ParseSums(absl::string_view bytes);

}  // namespace terse

#endif  // TERSE_STORAGE_CLIENT_SUMS_H_
