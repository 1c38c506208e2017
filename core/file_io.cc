#include "core/file_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

absl::Status ErrnoStatus(int error, absl::string_view action, const std::string& path) {
  const std::string message = absl::StrCat("cannot ", action, " ", path);
  if (error == EIO) return absl::UnavailableError(absl::StrCat(message, ": ", strerror(error), "; check the disk"));
  return absl::ErrnoToStatus(error, message);
}

class ScopedFd {
 public:
  explicit ScopedFd(int fd) : fd_(fd) {}
  ScopedFd(ScopedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ScopedFd& operator=(ScopedFd&&) = delete;
  ~ScopedFd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::StatusOr<ScopedFd> OpenFd(const std::string& path, int flags, absl::string_view action) {
  while (true) {
    const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd >= 0) return ScopedFd(fd);
    if (errno != EINTR) return ErrnoStatus(errno, action, path);
  }
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return ErrnoStatus(errno, "write", path);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// The descriptor stays open until the fsync: only then is a write-back error sure to be reported to us.
absl::StatusOr<ScopedFd> WriteUnsynced(const std::string& path, absl::Span<const absl::string_view> parts) {
  TERSE_ASSIGN_OR_RETURN(ScopedFd fd, OpenFd(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
  for (absl::string_view part : parts) TERSE_RETURN_IF_ERROR(WriteAll(fd.get(), part, path));
  return fd;
}

absl::Status Sync(int fd, const std::string& path) {
  if (fsync(fd) != 0) return ErrnoStatus(errno, "flush to disk", path);
  return absl::OkStatus();
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status MakeOneDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return SyncDirectory(ParentOf(path));
  if (errno != EEXIST) return ErrnoStatus(errno, "create directory", path);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "examine", path);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a directory; name another one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeDirectory(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("a directory's name is empty");
  std::string clean = path;
  while (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  struct stat info;
  if (stat(clean.c_str(), &info) != 0) {
    const std::string parent = ParentOf(clean);
    if (parent != clean) TERSE_RETURN_IF_ERROR(MakeDirectory(parent));
  }
  return MakeOneDirectory(clean);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  TERSE_ASSIGN_OR_RETURN(const ScopedFd fd, OpenFd(path, O_RDONLY, "open"));
  const absl::Status too_large = absl::ResourceExhaustedError(
      absl::StrCat(path, " has more than the ", max_bytes, " bytes that are allowed here"));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "examine", path);
  if (info.st_size > max_bytes) return too_large;
  // One byte more than announced, so that the end is seen without growing; a pipe or a growing file needs to grow.
  std::string bytes(static_cast<size_t>(info.st_size) + 1, '\0');
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size()) {
      if (static_cast<int64_t>(filled) > max_bytes) return too_large;
      bytes.resize(filled + std::min<size_t>(filled, size_t{1} << 20));
    }
    const ssize_t got = read(fd.get(), &bytes[filled], bytes.size() - filled);
    if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    if (got > 0) filled += static_cast<size_t>(got);
  }
  if (static_cast<int64_t>(filled) > max_bytes) return too_large;
  bytes.resize(filled);
  return bytes;
}

absl::Status WriteFilesSynced(absl::Span<const FileContents> files) {
  std::vector<ScopedFd> fds;
  for (const FileContents& file : files) {
    TERSE_ASSIGN_OR_RETURN(ScopedFd fd, WriteUnsynced(file.path, file.parts));
    fds.push_back(std::move(fd));
  }
  for (size_t i = 0; i < files.size(); ++i) TERSE_RETURN_IF_ERROR(Sync(fds[i].get(), files[i].path));
  return absl::OkStatus();
}

absl::Status WriteFileSynced(const std::string& path, absl::Span<const absl::string_view> parts) {
  TERSE_ASSIGN_OR_RETURN(const ScopedFd fd, WriteUnsynced(path, parts));
  return Sync(fd.get(), path);
}

absl::Status SyncDirectory(const std::string& path) {
  TERSE_ASSIGN_OR_RETURN(const ScopedFd fd, OpenFd(path, O_RDONLY | O_DIRECTORY, "open directory"));
  return Sync(fd.get(), path);
}

absl::Status ReplaceFile(const std::string& path, absl::Span<const absl::string_view> parts) {
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  TERSE_RETURN_IF_ERROR(WriteFileSynced(temporary, parts));
  if (rename(temporary.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, "rename a new file to", path);
  return SyncDirectory(ParentOf(path));
}

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove", path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return ErrnoStatus(errno, "list", path);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> DirectoryLock::Acquire(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(ScopedFd fd, OpenFd(absl::StrCat(directory, "/lock"), O_RDWR | O_CREAT, "open"));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", directory);
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is in use by another process; stop that one or name another directory"));
  }
  return std::unique_ptr<DirectoryLock>(new DirectoryLock(fd.Release()));
}

DirectoryLock::~DirectoryLock() { close(fd_); }

}  // namespace terse
