// Large messages, checkpoints and files in chunks of tables, so that neither the server nor a coordinator needs memory
// for more than one chunk beside what it was asked for. Internal to storage/; documented in storage/SCHEMA.md.
#ifndef TERSE_STORAGE_POSTGRES_BLOBS_H_
#define TERSE_STORAGE_POSTGRES_BLOBS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "storage/checkpoint_files.h"
#include "storage/checkpoint_storage.h"
#include "storage/large_messages.h"

namespace terse {

// Bytes of a chunk; the last one of a blob has fewer.
inline constexpr int64_t kChunkBytes = 1 << 20;

// In the table message_chunks: a segment is one message. It is written in the transaction that names it, so nothing has
// to be synced or held.
class BlobMessages final : public LargeMessages {
 public:
  explicit BlobMessages(const MessageLimits& limits) : inline_bytes_(limits.inline_bytes) {}

  int64_t inline_bytes() const override { return inline_bytes_; }
  absl::StatusOr<SegmentPlace> Append(SqlDb& db, absl::string_view message) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::StatusOr<std::string> Read(SqlDb& db, const SegmentPlace& place) override;
  absl::Status RemoveUnnamed(SqlDb& db) override;
  std::shared_ptr<void> Hold() override { return nullptr; }

 private:
  const int64_t inline_bytes_;
};

// In the table checkpoint_chunks, each chunk in a transaction of its own, so that no commit waits for a whole model.
// The newest one is also in a file of this coordinator, which clients download and which is made anew where it is
// missing.
class BlobCheckpoints final : public CheckpointStorage {
 public:
  // DIR/checkpoints exists. `files` must outlive it.
  BlobCheckpoints(FileSystem& files, std::string directory, std::string place)
      : files_(files), directory_(std::move(directory)), place_(std::move(place)) {}

  absl::StatusOr<CheckpointBytes> Write(StoreTransactions& store, const CheckpointView& checkpoint) override;
  absl::StatusOr<Checkpoint> Load(StoreTransactions& store, const RecordedCheckpoint& recorded) override;
  absl::Status Remove(StoreTransactions& store, int64_t version) override;
  absl::StatusOr<std::string> FileOf(StoreTransactions& store, const RecordedCheckpoint& recorded) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string place() const override { return place_; }

 private:
  // Makes the file of a version, and removes all but that and the one before.
  absl::Status MakeFile(int64_t version, const std::vector<absl::string_view>& parts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FileSystem& files_;
  const std::string directory_;
  const std::string place_;
  absl::Mutex mutex_;
  int64_t file_version_ ABSL_GUARDED_BY(mutex_) = -1;  // whose file there is; -1: none
};

// Puts a file that came with a run (storage/module_file.h) into the database, in the place of an earlier one. Statuses
// of the transactions.
absl::Status StoreFile(StoreTransactions& store, absl::string_view name, absl::string_view bytes);

// Makes the files that are in the database and not in the directory. Statuses of SqlDb and of FileSystem.
absl::Status FetchFiles(SqlDb& db, FileSystem& files, const std::string& directory);

// Removes the chunks of checkpoints that are not recorded: a crash kept them from being.
absl::Status RemoveOrphanChunks(SqlDb& db);

}  // namespace terse

#endif  // TERSE_STORAGE_POSTGRES_BLOBS_H_
