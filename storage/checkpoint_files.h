// CheckpointStorage in files below a run's directory, and their names. Internal to storage/.
//
//   DIR/checkpoints/NNNNNNNNNN.ckpt   DIR/checkpoints/NNNNNNNNNN.state
#ifndef TERSE_STORAGE_CHECKPOINT_FILES_H_
#define TERSE_STORAGE_CHECKPOINT_FILES_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/file_system.h"
#include "storage/checkpoint_storage.h"

namespace terse {

// DIR/checkpoints.
std::string CheckpointsDirectory(const std::string& run_directory);
// Names of a checkpoint's files, and the path below the run's directory of the one with the weights.
std::string CheckpointName(int64_t version);
std::string ServerStateName(int64_t version);
std::string CheckpointPath(const std::string& run_directory, int64_t version);
// Whether a file of that name is one of a checkpoint, or was to become one.
bool IsCheckpointName(absl::string_view name);
// Removes the files of other versions. Others' files stay. Statuses of FileSystem.
absl::Status RemoveOtherCheckpoints(FileSystem& files, const std::string& run_directory,
                                    const std::set<int64_t>& versions);

class CheckpointFiles final : public CheckpointStorage {
 public:
  // The directory of checkpoints exists before the first Write. `files` must outlive it.
  CheckpointFiles(FileSystem& files, std::string run_directory) : files_(files), directory_(std::move(run_directory)) {}

  // The same as Write and Load, which need no database here.
  absl::StatusOr<CheckpointBytes> WriteFiles(const CheckpointView& checkpoint);
  absl::StatusOr<Checkpoint> LoadFiles(const RecordedCheckpoint& recorded);

  absl::StatusOr<CheckpointBytes> Write(StoreTransactions& store, const CheckpointView& checkpoint) override;
  absl::StatusOr<Checkpoint> Load(StoreTransactions& store, const RecordedCheckpoint& recorded) override;
  absl::Status Remove(StoreTransactions& store, int64_t version) override;
  absl::StatusOr<std::string> FileOf(StoreTransactions& store, const RecordedCheckpoint& recorded) override;
  std::string place() const override { return CheckpointsDirectory(directory_); }

 private:
  FileSystem& files_;
  const std::string directory_;
};

}  // namespace terse

#endif  // TERSE_STORAGE_CHECKPOINT_FILES_H_
