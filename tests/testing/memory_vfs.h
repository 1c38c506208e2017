// SQLite on a MemoryDisk: files, locks and the shared memory of WAL mode, all inside the process.
#ifndef TERSE_TESTS_TESTING_MEMORY_VFS_H_
#define TERSE_TESTS_TESTING_MEMORY_VFS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

struct sqlite3_vfs;

namespace terse {

class MemoryDisk;
class MemoryFile;
class MemoryHandle;

// Registered with SQLite under a name of its own for as long as it lives; databases on it must be closed before. It
// does what SQLite's own VFS does on Linux: a new journal or WAL has its directory synced with its first sync, sectors
// have 512 bytes, and a torn write leaves the bytes around it alone. Thread-safe as far as connections are.
class MemoryVfs {
 public:
  // `disk` must outlive it.
  explicit MemoryVfs(MemoryDisk* disk);
  ~MemoryVfs();
  MemoryVfs(const MemoryVfs&) = delete;
  MemoryVfs& operator=(const MemoryVfs&) = delete;

  const std::string& name() const { return name_; }
  MemoryDisk* disk() const { return disk_; }

  // Locks and shared memory of one file in one process, for all of its connections.
  class Shared;
  std::shared_ptr<Shared> SharedOf(const std::shared_ptr<MemoryHandle>& handle);

 private:
  MemoryDisk* const disk_;
  const std::string name_;
  const std::unique_ptr<sqlite3_vfs> vfs_;
  absl::Mutex mutex_;
  std::map<const MemoryFile*, std::weak_ptr<Shared>> shared_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_VFS_H_
