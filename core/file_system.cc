#include "core/file_system.h"

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
#include "core/fault.h"
#include "core/file_modes.h"
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

absl::Status SyncStatus(int result, const std::string& path) {
  if (result == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("cannot flush ", path, " to disk: ", strerror(errno),
                                         "; what is on the disk is not known: check it, then start again"));
}

class PosixFile final : public WritableFile {
 public:
  // The file has `size` bytes.
  PosixFile(ScopedFd fd, std::string path, int64_t size, bool syncs)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size), syncs_(syncs) {}

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return ErrnoStatus(errno, "write", path_);
      if (written <= 0) continue;
      bytes.remove_prefix(static_cast<size_t>(written));
      written_ += written;
    }
    return absl::OkStatus();
  }

  // The data and what it takes to find it, not the time of the change.
  absl::Status Sync() override {
    if (written_ < size_ && ftruncate(fd_.get(), written_) != 0) return ErrnoStatus(errno, "cut", path_);
    size_ = written_;
    if (!syncs_) return absl::OkStatus();
    return SyncStatus(fdatasync(fd_.get()), path_);
  }

 private:
  const ScopedFd fd_;
  const std::string path_;
  int64_t size_;
  const bool syncs_;
  int64_t written_ = 0;
};

// flock on DIR/lock: the kernel lets go of it with the process.
class PosixLock final : public DirectoryLock {
 public:
  explicit PosixLock(ScopedFd fd) : fd_(std::move(fd)) {}

 private:
  const ScopedFd fd_;
};

std::string LockPath(const std::string& directory) { return absl::StrCat(directory, "/lock"); }

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(bool syncs) : syncs_(syncs) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    TERSE_ASSIGN_OR_RETURN(ScopedFd fd, OpenFd(path, O_WRONLY | O_CREAT | O_TRUNC, "create"));
    TERSE_RETURN_IF_ERROR(MakePrivate(path));
    return std::make_unique<PosixFile>(std::move(fd), path, 0, syncs_);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Overwrite(const std::string& path) override {
    TERSE_ASSIGN_OR_RETURN(ScopedFd fd, OpenFd(path, O_WRONLY | O_CREAT, "open"));
    TERSE_RETURN_IF_ERROR(MakePrivate(path));
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "examine", path);
    return std::make_unique<PosixFile>(std::move(fd), path, info.st_size, syncs_);
  }

  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes) override;
  absl::StatusOr<std::string> ReadPart(const std::string& path, int64_t offset, int64_t bytes) override;

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(errno, "rename a new file to", to);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    if (!syncs_) return absl::OkStatus();
    TERSE_ASSIGN_OR_RETURN(const ScopedFd fd, OpenFd(path, O_RDONLY | O_DIRECTORY, "open directory"));
    return SyncStatus(fsync(fd.get()), path);
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<DirectoryLock>> Lock(const std::string& directory) override;
  std::string SqliteVfs() const override { return ""; }

 private:
  absl::Status MakeOneDirectory(const std::string& path);

  const bool syncs_;
};

absl::StatusOr<std::string> PosixFileSystem::Read(const std::string& path, int64_t max_bytes) {
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

absl::StatusOr<std::string> PosixFileSystem::ReadPart(const std::string& path, int64_t offset, int64_t bytes) {
  TERSE_ASSIGN_OR_RETURN(const ScopedFd fd, OpenFd(path, O_RDONLY, "open"));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "examine", path);
  // A call that asks for more than there is takes no memory for it.
  std::string part(static_cast<size_t>(std::clamp<int64_t>(info.st_size - offset, 0, bytes)), '\0');
  size_t filled = 0;
  while (filled < part.size()) {
    const ssize_t got = pread(fd.get(), &part[filled], part.size() - filled, offset + static_cast<off_t>(filled));
    if (got < 0 && errno != EINTR) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    if (got > 0) filled += static_cast<size_t>(got);
  }
  part.resize(filled);
  return part;
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::List(const std::string& path) {
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

absl::Status PosixFileSystem::MakeOneDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return SyncDirectory(ParentOf(path));
  if (errno == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot create directory ", path, ": ", strerror(errno),
                     "; name one where this user may write, or have it made for this user"));
  }
  if (errno != EEXIST) return ErrnoStatus(errno, "create directory", path);
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, "examine", path);
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a directory; name another one"));
  }
  // The process that made it may have died before its name was durable. A parent that may not be opened is not ours to
  // sync.
  const absl::Status synced = SyncDirectory(ParentOf(path));
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

absl::Status PosixFileSystem::MakeDirectory(const std::string& path) {
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

absl::StatusOr<std::unique_ptr<DirectoryLock>> PosixFileSystem::Lock(const std::string& directory) {
  TERSE_ASSIGN_OR_RETURN(ScopedFd fd, OpenFd(LockPath(directory), O_RDWR | O_CREAT, "open"));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", directory);
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is in use by another process; stop that one or name another directory"));
  }
  TERSE_RETURN_IF_ERROR(MakePrivate(directory));
  return std::make_unique<PosixLock>(std::move(fd));
}

absl::StatusOr<std::unique_ptr<WritableFile>> WriteUnsynced(FileSystem& files, const FileContents& contents) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                         contents.overwrite ? files.Overwrite(contents.path) : files.Create(contents.path));
  for (absl::string_view part : contents.parts) TERSE_RETURN_IF_ERROR(file->Append(part));
  return file;
}

}  // namespace

std::string FilePath(absl::string_view directory, absl::string_view name) { return absl::StrCat(directory, "/", name); }

FileSystem& PosixFiles() {
  static auto* const files = new PosixFileSystem(/*syncs=*/true);
  return *files;
}

FileSystem& UnsyncedFiles() {
  static auto* const files = new PosixFileSystem(/*syncs=*/false);
  return *files;
}

absl::StatusOr<bool> IsLocked(const std::string& directory) {
  const absl::StatusOr<ScopedFd> fd = OpenFd(LockPath(directory), O_RDONLY, "open");
  if (absl::IsNotFound(fd.status())) return false;
  if (!fd.ok()) return fd.status();
  // Shared, so that two who ask do not take each other for a holder.
  if (flock(fd->get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return ErrnoStatus(errno, "examine the lock of", directory);
}

absl::Status MakePrivate(const std::string& path) {
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, "examine", path);
  const bool is_shared = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  if ((!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) || is_shared) return absl::OkStatus();
  if ((info.st_mode & kOthers) == 0) return absl::OkStatus();
  const mode_t own = info.st_mode & static_cast<mode_t>(~S_IFMT) & ~kOthers;
  if (chmod(path.c_str(), own) == 0 || errno == EPERM || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, "make private", path);
}

absl::Status WriteFilesSynced(FileSystem& files, absl::Span<const FileContents> contents) {
  // Each stays open until its sync: only then is a write-back error sure to be reported to us.
  std::vector<std::unique_ptr<WritableFile>> open;
  for (const FileContents& file : contents) {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> written, WriteUnsynced(files, file));
    open.push_back(std::move(written));
  }
  TERSE_FAILPOINT("file.write.before_sync");
  for (const std::unique_ptr<WritableFile>& file : open) TERSE_RETURN_IF_ERROR(file->Sync());
  return absl::OkStatus();
}

absl::Status WriteFileSynced(FileSystem& files, const std::string& path, absl::Span<const absl::string_view> parts) {
  return WriteFilesSynced(files, {FileContents{path, {parts.begin(), parts.end()}}});
}

absl::Status ReplaceFile(FileSystem& files, const std::string& path, absl::Span<const absl::string_view> parts) {
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  TERSE_RETURN_IF_ERROR(WriteFileSynced(files, temporary, parts));
  TERSE_FAILPOINT("file.replace.before_rename");
  TERSE_RETURN_IF_ERROR(files.Rename(temporary, path));
  TERSE_FAILPOINT("file.replace.before_directory_sync");
  return files.SyncDirectory(ParentOf(path));
}

}  // namespace terse
