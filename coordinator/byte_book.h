// Books every byte: what crossed each client's connection since the last settled round, until it goes into the ledger.
#ifndef TERSE_COORDINATOR_BYTE_BOOK_H_
#define TERSE_COORDINATOR_BYTE_BOOK_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/wire_meter.h"
#include "storage/run_store.h"

namespace terse {

// Payload bytes are booked when an update is accepted or comes too late and when a message is sent, wire bytes when a
// connection is sampled. All of it goes to the round in which Take is called: a round's wire bytes are those since the
// round before was settled.
// Not thread-safe.
class ByteBook {
 public:
  void AddUp(int64_t client, int64_t payload_bytes, int64_t dense_bytes);
  void AddDown(int64_t client, int64_t payload_bytes, int64_t dense_bytes);
  // Books what crossed the connection since `*booked`, the reading that was booked last, and moves it to `now`.
  void AddWire(int64_t client, WireBytes now, WireBytes* booked);

  // The collected rows for `round`; the book is empty afterwards.
  std::vector<LedgerEntry> Take(int64_t round);

 private:
  LedgerEntry& Row(int64_t client, Direction direction);

  absl::btree_map<std::pair<int64_t, int>, LedgerEntry> rows_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_BYTE_BOOK_H_
