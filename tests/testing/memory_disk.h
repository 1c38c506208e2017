// A disk in memory that behaves like one at its worst: a power loss keeps what was synced and any part of the rest, and
// every operation can be made to fail. SQLite works on it too (SqliteVfs). Any number of disks live side by side.
//
// Processes are simulated: a disk serves one at a time. Kill ends it, Start begins the next.
#ifndef TERSE_TESTS_TESTING_MEMORY_DISK_H_
#define TERSE_TESTS_TESTING_MEMORY_DISK_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/file_system.h"
#include "core/random.h"
#include "tests/testing/memory_node.h"

namespace terse {

class MemoryVfs;

enum class DiskOp {
  kOpen,  // or create
  kRead,
  kWrite,
  kTruncate,
  kSync,
  kRename,
  kRemove,
  kList,
  kMakeDirectory,
  kSyncDirectory,
  kLock,
};

// Asked before every operation, without the disk's lock; the path is of the file, or of the directory. 0 lets it
// happen; an errno (EIO, ENOSPC) makes it fail. A write that fails leaves a part of itself. A sync of a file that fails
// leaves its data visible, durable in part, and nothing for the next sync to do, as Linux does; a directory's stays to
// be done. The answer may call Kill or LosePower: the operation then fails whatever is returned.
using DiskFault = std::function<int(DiskOp op, const std::string& path)>;

// An open file. Every call returns 0 or an errno; EIO once the process that opened it was killed. Thread-safe.
class MemoryHandle {
 public:
  virtual ~MemoryHandle() = default;
  // Up to `size` bytes to `out`; *got is less at the end of the file.
  virtual int Read(int64_t offset, int64_t size, char* out, int64_t* got) = 0;
  virtual int Write(int64_t offset, absl::string_view bytes) = 0;
  virtual int Truncate(int64_t size) = 0;
  virtual int Sync() = 0;
  virtual int Size(int64_t* size) = 0;
  // Identifies the file for as long as the handle lives.
  virtual const MemoryFile* file() const = 0;
  virtual const std::string& path() const = 0;
};

// Thread-safe, except where a method says otherwise. Handles, locks and databases must not outlive it.
class MemoryDisk final : public FileSystem {
 public:
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

  // `seed` decides what failing writes and syncs leave behind.
  explicit MemoryDisk(uint64_t seed = 0);
  ~MemoryDisk() override;

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Overwrite(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes = kMaxFileBytes) override;
  absl::StatusOr<std::string> ReadPart(const std::string& path, int64_t offset, int64_t bytes) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override;
  std::string SqliteVfs() const override;

  // The process is gone: what it wrote stays, its locks go, and nothing works until Start; what it had open never
  // again.
  void Kill();
  // Kill, and of what was not synced only a part, drawn from `random`, is still there.
  void LosePower(Random* random);
  void Start();
  bool running() const;

  // Sets the fault; not while an operation runs. nullptr: nothing fails.
  void set_fault(DiskFault fault) { fault_ = std::move(fault); }
  // Writes beyond so many bytes, all files together, fail with ENOSPC.
  void set_capacity(int64_t bytes);
  int64_t used() const;

  // Everything as it is now, and the way back: for restoring an old copy of a machine. No process may be running.
  std::shared_ptr<const MemoryDirectory> Snapshot() const;
  void Restore(const MemoryDirectory& snapshot);

  // The operations that only SQLite needs; each returns 0 or an errno.
  int OpenHandle(const std::string& path, bool create, std::shared_ptr<MemoryHandle>* handle);
  int Unlink(const std::string& path);
  int SyncNames(const std::string& directory);
  // -1 when nothing has that name; 0 for a directory.
  int64_t SizeOf(const std::string& path) const;
  static std::string ParentOf(const std::string& path);

 private:
  class Handle;
  class Lease;

  // The end of a path: its directory, and the name in it.
  struct Place {
    std::shared_ptr<MemoryDirectory> directory;  // null when a part of the path is missing
    std::string name;
  };

  // 0 when the operation may go on.
  int Ask(DiskOp op, const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  Place Find(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<MemoryDirectory> FindDirectory(const std::string& path) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  int MakeOneDirectory(const std::string& path);
  int OpenEmpty(const std::string& path, std::shared_ptr<MemoryHandle>* handle);
  int64_t Used() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void EndProcess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DiskFault fault_;

  mutable absl::Mutex mutex_;
  Random random_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<MemoryDirectory> root_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> locked_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t process_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t capacity_ ABSL_GUARDED_BY(mutex_) = kEndless;

  std::unique_ptr<MemoryVfs> vfs_;
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_MEMORY_DISK_H_
