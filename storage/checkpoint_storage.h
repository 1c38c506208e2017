// Where the numbers of a run's checkpoints are, beside the rows that record them: on SQLite in files
// (storage/checkpoint_files.h), on PostgreSQL in chunks of a table (storage/postgres_blobs.h). Internal to storage/.
#ifndef TERSE_STORAGE_CHECKPOINT_STORAGE_H_
#define TERSE_STORAGE_CHECKPOINT_STORAGE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/run_records.h"
#include "storage/sql_db.h"

namespace terse {

// Sizes of a checkpoint's two parts; 0 for none.
struct CheckpointBytes {
  int64_t weights = 0;
  int64_t server_state = 0;
};

// A checkpoint as its rows record it.
struct RecordedCheckpoint {
  int64_t version = 0;
  Id128 model_hash;
  CheckpointBytes bytes;
};

// A run's store lends its transactions to those who keep something in its database.
class StoreTransactions {
 public:
  virtual ~StoreTransactions() = default;
  // One transaction, which is refused when another coordinator opened the store; durable when it returns.
  virtual absl::Status Write(absl::FunctionRef<absl::Status(SqlDb&)> body) = 0;
  // One snapshot.
  virtual absl::Status Read(absl::FunctionRef<absl::Status(SqlDb&)> body) = 0;
};

// One thread at a time, unless a call says otherwise.
class CheckpointStorage {
 public:
  virtual ~CheckpointStorage() = default;

  // Writes the parts, durably, and what clients download last. Nobody reads them before they are recorded; what a crash
  // keeps from being recorded, the next opening removes.
  virtual absl::StatusOr<CheckpointBytes> Write(StoreTransactions& store, const CheckpointView& checkpoint) = 0;
  // Reads a checkpoint. DATA_LOSS, with its place, when it is not what was recorded.
  virtual absl::StatusOr<Checkpoint> Load(StoreTransactions& store, const RecordedCheckpoint& recorded) = 0;
  // Removes the parts of a version that is recorded no longer. OK when there are none.
  virtual absl::Status Remove(StoreTransactions& store, int64_t version) = 0;
  // The path of a file with the weights of a recorded checkpoint. Any thread may call it.
  virtual absl::StatusOr<std::string> FileOf(StoreTransactions& store, const RecordedCheckpoint& recorded) = 0;
  // Where the checkpoints are, for people.
  virtual std::string place() const = 0;
};

// Joins the parts of a checkpoint, read from `weights_place` and `state_place`. DATA_LOSS, with the place, when they
// are not what was recorded.
absl::StatusOr<Checkpoint> JoinCheckpoint(const RecordedCheckpoint& recorded, absl::string_view weights,
                                          absl::string_view weights_place, absl::string_view server_state,
                                          absl::string_view state_place);

// DATA_LOSS of a run of which no checkpoint can be read.
absl::Status NoWholeCheckpoint(absl::string_view place, absl::string_view reason, absl::string_view remedy);

}  // namespace terse

#endif  // TERSE_STORAGE_CHECKPOINT_STORAGE_H_
