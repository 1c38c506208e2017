// The disk as a seam: what Terse does with files, as few primitive operations, and the compositions of them that
// survive a crash. Tests put a disk in its place that loses what was not synced, fills up or fails
// (tests/testing/memory_disk.h).
#ifndef TERSE_CORE_FILE_SYSTEM_H_
#define TERSE_CORE_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace terse {

// Name of a file that ReplaceFile has not yet renamed: the target's name and this. One that a crash left may be
// removed.
constexpr char kTemporarySuffix[] = ".tmp";

inline constexpr int64_t kMaxFileBytes = int64_t{1} << 34;

// DIRECTORY/NAME.
std::string FilePath(absl::string_view directory, absl::string_view name);

// Statuses of all operations, each naming the path:
//   RESOURCE_EXHAUSTED  the disk is full, or the file is larger than allowed. What was there before is still there.
//   UNAVAILABLE         an input/output error of the disk other than a failed sync. Trying again may help.
//   UNKNOWN             a sync failed: what is on the disk cannot be known, and a second sync may succeed without
//   having
//                       written anything (the kernel drops the pages). The process must end and read the disk afresh.
//   NOT_FOUND, PERMISSION_DENIED, ...  absl::ErrnoToStatus of the system's error.
inline bool IsSyncFailure(const absl::Status& status) { return absl::IsUnknown(status); }

// A disk that is full or fails for now: nothing changed, and the same call may work later.
inline bool IsDiskTrouble(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// A file that is written from its beginning on. The destructor closes it. Not thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Afterwards the file holds what was appended and nothing else, durably; its name is durable only after
  // SyncDirectory.
  virtual absl::Status Sync() = 0;
};

// An advisory lock on a directory, held while the object lives.
class DirectoryLock {
 public:
  virtual ~DirectoryLock() = default;
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates or empties `path`, mode 0600, whatever the mode of a file that is there (core/file_modes.h).
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens `path`, or creates it as Create does. Until Sync the end of a longer file that is there stays. The disk has
  // its blocks already, so that writing and syncing 1.7 MB takes half the time of a new file's or less; a crash leaves
  // any mixture of old and new bytes.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Overwrite(const std::string& path) = 0;
  // The whole file. NOT_FOUND when there is none; RESOURCE_EXHAUSTED when it is larger than `max_bytes`.
  virtual absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes = kMaxFileBytes) = 0;
  // Reads up to `bytes` bytes from `offset` on; fewer where the file ends before. NOT_FOUND when there is none.
  virtual absl::StatusOr<std::string> ReadPart(const std::string& path, int64_t offset, int64_t bytes) = 0;
  // Renames `from` to `to`, and replaces `to` if it is there. Durable only after SyncDirectory.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes the new, renamed and removed names in a directory durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Removes a file. OK when there is none.
  virtual absl::Status Remove(const std::string& path) = 0;
  // Returns the names of a directory's entries, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // Creates `path` and its parents, mode 0700 for what it creates, durably. OK when it is there already.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // Locks DIR/lock and makes DIR private (core/file_modes.h). FAILED_PRECONDITION naming it when somebody holds it.
  virtual absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) = 0;
  // Name of the SQLite VFS whose files are on this disk; empty for SQLite's default.
  virtual std::string SqliteVfs() const = 0;
};

// The machine's own file system. Never destroyed.
FileSystem& PosixFiles();
// The same without a sync: a process that is killed leaves what it wrote, a machine that loses power may not. For what
// can be made again, as a simulation can.
FileSystem& UnsyncedFiles();

// Whether a process of this machine holds the lock of a directory. Writes nothing and never waits; false without a lock
// file. A process that takes the lock at this very moment may be refused. PERMISSION_DENIED and the like when DIR/lock
// cannot be opened.
absl::StatusOr<bool> IsLocked(const std::string& directory);

// Writes the concatenation of `parts` and syncs the file; the directory entry is not yet durable.
absl::Status WriteFileSynced(FileSystem& files, const std::string& path, absl::Span<const absl::string_view> parts);

struct FileContents {
  std::string path;
  std::vector<absl::string_view> parts;
  bool overwrite = false;  // FileSystem::Overwrite in place of Create
};

// Acts as WriteFileSynced for each file, but writes all before the first sync, so that the disk works on them at once.
absl::Status WriteFilesSynced(FileSystem& files, absl::Span<const FileContents> contents);

// Replaces `path` atomically and durably: temporary file, sync, rename, sync of the directory. After a crash the file
// holds either the old or the new bytes.
absl::Status ReplaceFile(FileSystem& files, const std::string& path, absl::Span<const absl::string_view> parts);

}  // namespace terse

#endif  // TERSE_CORE_FILE_SYSTEM_H_
