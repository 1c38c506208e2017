// Where received updates wait for the end of their round: in memory as long as they are few or small, and beyond that
// in files without a name, so that a round of any size takes bounded memory of the process. A cache: nothing of it is
// synced, and nothing is left when the process dies.
#ifndef TERSE_STORAGE_UPDATE_SPOOL_H_
#define TERSE_STORAGE_UPDATE_SPOOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/held_bytes.h"

namespace terse {

struct SpoolLimits {
  int64_t memory_bytes = int64_t{64} << 20;  // of all updates that stand in memory
  int64_t file_bytes = int64_t{64} << 20;    // of a file; one for a larger update is as large as that
};

// Thread-safe. What it returned may outlive it.
class UpdateSpool {
 public:
  // Files are made in the directory, which exists when one is needed first.
  explicit UpdateSpool(std::string directory, const SpoolLimits& limits = {});

  // Takes the bytes, which are not empty. What lies in a file is mapped: pages of it that were read count as the
  // process's, and the kernel takes them back when it needs them. A page that it then cannot read again ends the
  // process (SIGBUS). RESOURCE_EXHAUSTED when the disk is full, otherwise UNAVAILABLE, with the directory and the
  // remedy; the bytes are gone then.
  absl::StatusOr<std::shared_ptr<const HeldBytes>> Keep(std::string bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Bytes that stand in memory.
  int64_t in_memory() const { return *in_memory_; }

 private:
  class InMemory;
  class InFile;
  class File;

  // Where bytes will be written.
  struct Place {
    std::shared_ptr<File> file;
    int64_t offset = 0;
  };
  absl::StatusOr<Place> Reserve(int64_t size) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string directory_;
  const SpoolLimits limits_;
  const std::shared_ptr<std::atomic<int64_t>> in_memory_ = std::make_shared<std::atomic<int64_t>>(0);
  absl::Mutex mutex_;
  std::shared_ptr<File> file_ ABSL_GUARDED_BY(mutex_);  // the newest one; null before the first
  int64_t filled_ ABSL_GUARDED_BY(mutex_) = 0;          // bytes of it
};

}  // namespace terse

#endif  // TERSE_STORAGE_UPDATE_SPOOL_H_
