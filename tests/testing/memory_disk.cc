#include "tests/testing/memory_disk.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status.h"
#include "tests/testing/memory_vfs.h"

namespace terse {
namespace {

absl::Status ErrnoStatus(int error, absl::string_view action, const std::string& path) {
  if (error == 0) return absl::OkStatus();
  const std::string message = absl::StrCat("memory disk: cannot ", action, " ", path);
  if (error == EIO) return absl::UnavailableError(absl::StrCat(message, ": ", strerror(error)));
  return absl::ErrnoToStatus(error, message);
}

absl::Status SyncStatus(int error, const std::string& path) {
  if (error == 0) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("memory disk: cannot flush ", path, ": ", strerror(error)));
}

std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part != ".") parts.emplace_back(part);
  }
  return parts;
}

int64_t BytesBelow(const MemoryDirectory& directory) {
  int64_t bytes = 0;
  for (const auto& [name, node] : directory.names()) {
    bytes += node.file != nullptr ? node.file->size() : BytesBelow(*node.directory);
  }
  return bytes;
}

class AppendingFile final : public WritableFile {
 public:
  AppendingFile(std::shared_ptr<MemoryHandle> handle) : handle_(std::move(handle)) {}

  absl::Status Append(absl::string_view bytes) override {
    const int error = handle_->Write(offset_, bytes);
    offset_ += static_cast<int64_t>(bytes.size());
    return ErrnoStatus(error, "write", handle_->path());
  }
  absl::Status Sync() override {
    int64_t size = 0;
    int error = handle_->Size(&size);
    if (error == 0 && size > offset_) error = handle_->Truncate(offset_);
    if (error != 0) return ErrnoStatus(error, "cut", handle_->path());
    return SyncStatus(handle_->Sync(), handle_->path());
  }

 private:
  const std::shared_ptr<MemoryHandle> handle_;
  int64_t offset_ = 0;
};

}  // namespace

class MemoryDisk::Handle final : public MemoryHandle {
 public:
  Handle(MemoryDisk* disk, int64_t process, std::string path, std::shared_ptr<MemoryFile> file)
      : disk_(disk), process_(process), path_(std::move(path)), file_(std::move(file)) {}

  int Read(int64_t offset, int64_t size, char* out, int64_t* got) override {
    if (const int error = disk_->Ask(DiskOp::kRead, path_); error != 0) return error;
    absl::MutexLock lock(&disk_->mutex_);
    if (IsDead()) return EIO;
    *got = std::max<int64_t>(0, std::min(size, file_->size() - offset));
    if (*got > 0) memcpy(out, file_->bytes().data() + offset, *got);
    return 0;
  }

  int Write(int64_t offset, absl::string_view bytes) override {
    int error = disk_->Ask(DiskOp::kWrite, path_);
    absl::MutexLock lock(&disk_->mutex_);
    if (IsDead()) return EIO;
    if (disk_->capacity_ != kEndless) {
      const int64_t growth = offset + static_cast<int64_t>(bytes.size()) - file_->size();
      if (growth > 0 && disk_->Used() + growth > disk_->capacity_) error = ENOSPC;
    }
    if (error != 0) bytes = bytes.substr(0, disk_->random_.Below(bytes.size() + 1));
    if (!bytes.empty()) file_->Write(offset, bytes);
    return error;
  }

  int Truncate(int64_t size) override {
    if (const int error = disk_->Ask(DiskOp::kTruncate, path_); error != 0) return error;
    absl::MutexLock lock(&disk_->mutex_);
    if (IsDead()) return EIO;
    file_->Truncate(size);
    return 0;
  }

  int Sync() override {
    const int error = disk_->Ask(DiskOp::kSync, path_);
    absl::MutexLock lock(&disk_->mutex_);
    if (IsDead()) return EIO;
    if (error != 0) {
      file_->FailSync(&disk_->random_);
    } else {
      file_->Sync();
    }
    return error;
  }

  int Size(int64_t* size) override {
    absl::MutexLock lock(&disk_->mutex_);
    if (IsDead()) return EIO;
    *size = file_->size();
    return 0;
  }

  const MemoryFile* file() const override { return file_.get(); }
  const std::string& path() const override { return path_; }

 private:
  bool IsDead() const ABSL_SHARED_LOCKS_REQUIRED(disk_->mutex_) {
    return !disk_->running_ || disk_->process_ != process_;
  }

  MemoryDisk* const disk_;
  const int64_t process_;
  const std::string path_;
  const std::shared_ptr<MemoryFile> file_;
};

// A lock of a dead process is gone already, and the next one may hold it.
class MemoryDisk::Lease final : public DirectoryLock {
 public:
  Lease(MemoryDisk* disk, int64_t process, std::string path) : disk_(disk), process_(process), path_(std::move(path)) {}
  ~Lease() override {
    absl::MutexLock lock(&disk_->mutex_);
    if (disk_->process_ == process_) disk_->locked_.erase(path_);
  }

 private:
  MemoryDisk* const disk_;
  const int64_t process_;
  const std::string path_;
};

MemoryDisk::MemoryDisk(uint64_t seed)
    : random_(seed), root_(std::make_shared<MemoryDirectory>()), vfs_(std::make_unique<MemoryVfs>(this)) {}

MemoryDisk::~MemoryDisk() = default;

std::string MemoryDisk::SqliteVfs() const { return vfs_->name(); }

int MemoryDisk::Ask(DiskOp op, const std::string& path) {
  if (!running()) return EIO;
  const int error = fault_ ? fault_(op, path) : 0;
  return error == 0 && !running() ? EIO : error;
}

MemoryDisk::Place MemoryDisk::Find(const std::string& path) const {
  std::vector<std::string> parts = PartsOf(path);
  if (parts.empty()) return {};
  const std::string name = std::move(parts.back());
  parts.pop_back();
  std::shared_ptr<MemoryDirectory> directory = root_;
  for (const std::string& part : parts) {
    directory = directory->Find(part).directory;
    if (directory == nullptr) break;
  }
  return {std::move(directory), name};
}

std::shared_ptr<MemoryDirectory> MemoryDisk::FindDirectory(const std::string& path) const {
  const Place place = Find(path);
  if (place.name.empty()) return root_;
  return place.directory == nullptr ? nullptr : place.directory->Find(place.name).directory;
}

int MemoryDisk::OpenHandle(const std::string& path, bool create, std::shared_ptr<MemoryHandle>* handle) {
  if (const int error = Ask(DiskOp::kOpen, path); error != 0) return error;
  absl::MutexLock lock(&mutex_);
  const Place place = Find(path);
  if (place.directory == nullptr) return ENOENT;
  MemoryNode node = place.directory->Find(place.name);
  if (node.directory != nullptr) return EISDIR;
  if (node.file == nullptr) {
    if (!create) return ENOENT;
    node.file = std::make_shared<MemoryFile>();
    place.directory->Add(place.name, node);
  }
  *handle = std::make_shared<Handle>(this, process_, path, node.file);
  return 0;
}

int MemoryDisk::Unlink(const std::string& path) {
  if (const int error = Ask(DiskOp::kRemove, path); error != 0) return error;
  absl::MutexLock lock(&mutex_);
  const Place place = Find(path);
  if (place.directory == nullptr || !place.directory->Find(place.name)) return ENOENT;
  place.directory->Remove(place.name);
  return 0;
}

int MemoryDisk::SyncNames(const std::string& directory) {
  if (const int error = Ask(DiskOp::kSyncDirectory, directory); error != 0) return error;
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<MemoryDirectory> found = FindDirectory(directory);
  if (found == nullptr) return ENOENT;
  found->Sync();
  return 0;
}

int64_t MemoryDisk::SizeOf(const std::string& path) const {
  absl::MutexLock lock(&mutex_);
  const Place place = Find(path);
  if (place.name.empty()) return 0;
  const MemoryNode node = place.directory == nullptr ? MemoryNode() : place.directory->Find(place.name);
  if (!node) return -1;
  return node.file == nullptr ? 0 : node.file->size();
}

std::string MemoryDisk::ParentOf(const std::string& path) {
  std::vector<std::string> parts = PartsOf(path);
  if (!parts.empty()) parts.pop_back();
  return absl::StrCat("/", absl::StrJoin(parts, "/"));
}

int MemoryDisk::OpenEmpty(const std::string& path, std::shared_ptr<MemoryHandle>* handle) {
  if (const int error = OpenHandle(path, /*create=*/true, handle); error != 0) return error;
  int64_t size = 0;
  if (const int error = (*handle)->Size(&size); error != 0 || size == 0) return error;
  return (*handle)->Truncate(0);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryDisk::Create(const std::string& path) {
  std::shared_ptr<MemoryHandle> handle;
  const int error = OpenEmpty(path, &handle);
  if (error != 0) return ErrnoStatus(error, "create", path);
  return std::make_unique<AppendingFile>(std::move(handle));
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryDisk::Overwrite(const std::string& path) {
  std::shared_ptr<MemoryHandle> handle;
  const int error = OpenHandle(path, /*create=*/true, &handle);
  if (error != 0) return ErrnoStatus(error, "open", path);
  return std::make_unique<AppendingFile>(std::move(handle));
}

absl::StatusOr<std::string> MemoryDisk::Read(const std::string& path, int64_t max_bytes) {
  std::shared_ptr<MemoryHandle> handle;
  int64_t size = 0;
  int error = OpenHandle(path, /*create=*/false, &handle);
  if (error == 0) error = handle->Size(&size);
  if (error != 0) return ErrnoStatus(error, "open", path);
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(path, " has more than the ", max_bytes, " bytes allowed here"));
  }
  std::string bytes(static_cast<size_t>(size), '\0');
  int64_t got = 0;
  error = handle->Read(0, size, bytes.data(), &got);
  if (error != 0) return ErrnoStatus(error, "read", path);
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

absl::StatusOr<std::string> MemoryDisk::ReadPart(const std::string& path, int64_t offset, int64_t bytes) {
  std::shared_ptr<MemoryHandle> handle;
  if (const int error = OpenHandle(path, /*create=*/false, &handle); error != 0) {
    return ErrnoStatus(error, "open", path);
  }
  std::string part(static_cast<size_t>(bytes), '\0');
  int64_t got = 0;
  if (const int error = handle->Read(offset, bytes, part.data(), &got); error != 0) {
    return ErrnoStatus(error, "read", path);
  }
  part.resize(static_cast<size_t>(got));
  return part;
}

absl::Status MemoryDisk::Rename(const std::string& from, const std::string& to) {
  int error = Ask(DiskOp::kRename, to);
  if (error == 0) {
    absl::MutexLock lock(&mutex_);
    const Place source = Find(from);
    const Place target = Find(to);
    if (source.directory == nullptr || target.directory == nullptr || !source.directory->Find(source.name)) {
      error = ENOENT;
    } else if (source.directory != target.directory) {
      error = EXDEV;
    } else if (source.name != target.name) {
      source.directory->Rename(source.name, target.name);
    }
  }
  return ErrnoStatus(error, "rename a new file to", to);
}

absl::Status MemoryDisk::SyncDirectory(const std::string& path) { return SyncStatus(SyncNames(path), path); }

absl::Status MemoryDisk::Remove(const std::string& path) {
  const int error = Unlink(path);
  return error == ENOENT ? absl::OkStatus() : ErrnoStatus(error, "remove", path);
}

absl::StatusOr<std::vector<std::string>> MemoryDisk::List(const std::string& path) {
  if (const int error = Ask(DiskOp::kList, path); error != 0) return ErrnoStatus(error, "list", path);
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<MemoryDirectory> directory = FindDirectory(path);
  if (directory == nullptr) return ErrnoStatus(ENOENT, "list", path);
  std::vector<std::string> names;
  for (const auto& [name, node] : directory->names()) names.push_back(name);
  return names;
}

int MemoryDisk::MakeOneDirectory(const std::string& path) {
  if (const int error = Ask(DiskOp::kMakeDirectory, path); error != 0) return error;
  absl::MutexLock lock(&mutex_);
  const Place place = Find(path);
  if (place.directory == nullptr) return ENOENT;
  MemoryNode node;
  node.directory = std::make_shared<MemoryDirectory>();
  place.directory->Add(place.name, node);
  return 0;
}

// This does as PosixFiles does: the name of a directory that is there already is synced too, because its maker may have
// died or failed before that.
absl::Status MemoryDisk::MakeDirectory(const std::string& path) {
  if (PartsOf(path).empty()) return absl::OkStatus();
  const std::string parent = ParentOf(path);
  if (SizeOf(path) < 0) {
    TERSE_RETURN_IF_ERROR(MakeDirectory(parent));
    if (const int error = MakeOneDirectory(path); error != 0) return ErrnoStatus(error, "create directory", path);
  } else {
    absl::MutexLock lock(&mutex_);
    if (FindDirectory(path) == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is not a directory; name another one"));
    }
  }
  const int error = SyncNames(parent);
  return error == 0 ? absl::OkStatus() : SyncStatus(error, parent);
}

absl::StatusOr<std::unique_ptr<DirectoryLock>> MemoryDisk::Lock(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/lock");
  std::shared_ptr<MemoryHandle> handle;
  int error = OpenHandle(path, /*create=*/true, &handle);
  if (error == 0) error = Ask(DiskOp::kLock, path);
  if (error != 0) return ErrnoStatus(error, "lock", directory);
  absl::MutexLock lock(&mutex_);
  if (!locked_.insert(path).second) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is in use by another process; stop that one or name another directory"));
  }
  return std::make_unique<Lease>(this, process_, path);
}

void MemoryDisk::EndProcess() {
  running_ = false;
  ++process_;
  locked_.clear();
}

void MemoryDisk::Kill() {
  absl::MutexLock lock(&mutex_);
  EndProcess();
}

void MemoryDisk::LosePower(Random* random) {
  absl::MutexLock lock(&mutex_);
  EndProcess();
  root_->LosePower(random);
}

void MemoryDisk::Start() {
  absl::MutexLock lock(&mutex_);
  running_ = true;
}

bool MemoryDisk::running() const {
  absl::MutexLock lock(&mutex_);
  return running_;
}

void MemoryDisk::set_capacity(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  capacity_ = bytes;
}

int64_t MemoryDisk::Used() const { return BytesBelow(*root_); }

int64_t MemoryDisk::used() const {
  absl::MutexLock lock(&mutex_);
  return Used();
}

std::shared_ptr<const MemoryDirectory> MemoryDisk::Snapshot() const {
  absl::MutexLock lock(&mutex_);
  return root_->Copy();
}

void MemoryDisk::Restore(const MemoryDirectory& snapshot) {
  absl::MutexLock lock(&mutex_);
  root_ = snapshot.Copy();
}

}  // namespace terse
