// Messages that are too large for their row of the database: where they stand, and who keeps them there. On SQLite they
// are in files beside the database (storage/segment_messages.h), on PostgreSQL in chunks of a table
// (storage/postgres_blobs.h). Internal to storage/.
#ifndef TERSE_STORAGE_LARGE_MESSAGES_H_
#define TERSE_STORAGE_LARGE_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/id128.h"
#include "storage/sql_db.h"

namespace terse {

// Where a message is.
struct SegmentPlace {
  int64_t segment = 0;  // 1, 2, ...
  int64_t offset = 0;   // in bytes
  int64_t length = 0;   // in bytes
  Id128 hash;           // HashBytes of the message
};

// One thread at a time may call what changes something; Read and Hold may be called in any thread meanwhile.
class LargeMessages {
 public:
  virtual ~LargeMessages() = default;

  // A larger message is no part of its row.
  virtual int64_t inline_bytes() const = 0;
  // Writes the message, which is not empty, as a part of the transaction on `db`, and returns its place. After an error
  // the caller gives up the transaction.
  virtual absl::StatusOr<SegmentPlace> Append(SqlDb& db, absl::string_view message) = 0;
  // Makes durable what the transaction names, before it commits.
  virtual absl::Status Sync() = 0;
  // Reads a message whose place `db` names. DATA_LOSS with the place and the remedy when it is not there, or has
  // another hash.
  virtual absl::StatusOr<std::string> Read(SqlDb& db, const SegmentPlace& place) = 0;
  // Removes, as a part of the transaction on `db`, what no row names any more.
  virtual absl::Status RemoveUnnamed(SqlDb& db) = 0;
  // While the hold lives, nothing is removed that a snapshot of the database names which was taken after it.
  virtual std::shared_ptr<void> Hold() = 0;
};

}  // namespace terse

#endif  // TERSE_STORAGE_LARGE_MESSAGES_H_
