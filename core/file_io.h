// Files that survive a crash: whole-file reads, atomic replacement, directory locks. POSIX only.
#ifndef TERSE_CORE_FILE_IO_H_
#define TERSE_CORE_FILE_IO_H_

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

// Statuses of all functions: UNAVAILABLE for an input/output error of the disk, RESOURCE_EXHAUSTED for a full one, and
// otherwise absl::ErrnoToStatus of the system's error; each names the path. What is created gets mode 0600 (files).

// Creates `path` and its parents, mode 0700 for what it creates. OK when it is there already.
absl::Status MakeDirectory(const std::string& path);

// The whole file. NOT_FOUND when there is none; RESOURCE_EXHAUSTED when it is larger than `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = int64_t{1} << 34);

// Writes the concatenation of `parts` and fsyncs the file; the directory entry is not yet durable.
absl::Status WriteFileSynced(const std::string& path, absl::Span<const absl::string_view> parts);

struct FileContents {
  std::string path;
  std::vector<absl::string_view> parts;
};

// As WriteFileSynced for each file, but all are written before the first fsync, so that the disk works on them at once.
absl::Status WriteFilesSynced(absl::Span<const FileContents> files);

// Fsyncs a directory, which makes the renames and new names in it durable.
absl::Status SyncDirectory(const std::string& path);

// Replaces `path` atomically and durably: temporary file, fsync, rename, fsync of the directory. After a crash the file
// holds either the old or the new bytes.
absl::Status ReplaceFile(const std::string& path, absl::Span<const absl::string_view> parts);

// Removes a file; OK when there is none.
absl::Status RemoveFile(const std::string& path);

// Names of what a directory holds, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// An advisory lock (flock) on DIR/lock, held while the object lives.
class DirectoryLock {
 public:
  // FAILED_PRECONDITION naming the directory when another process holds it.
  static absl::StatusOr<std::unique_ptr<DirectoryLock>> Acquire(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace terse

#endif  // TERSE_CORE_FILE_IO_H_
