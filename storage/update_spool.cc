#include "storage/update_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

absl::Status SpoolError(absl::string_view action, const std::string& directory) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT;
  return absl::Status(is_full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                      absl::StrCat("cannot ", action, " a file for received updates in ", directory, ": ",
                                   strerror(error), "; ", is_full ? "make room on its disk" : "check its disk"));
}

// Returns a descriptor, or -1 and errno. Not every file system makes files without a name; there it has one for a
// moment.
int OpenUnnamed(const std::string& directory) {
  const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = FilePath(directory, "spool.XXXXXX");
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

}  // namespace

// A file without a name, mapped whole for reading.
class UpdateSpool::File {
 public:
  static absl::StatusOr<std::shared_ptr<File>> Make(const std::string& directory, int64_t size) {
    const int fd = OpenUnnamed(directory);
    if (fd < 0) return SpoolError("make", directory);
    auto file = std::shared_ptr<File>(new File(directory, fd));
    if (ftruncate(fd, size) != 0) return SpoolError("extend", directory);
    void* const begin = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, fd, 0);
    if (begin == MAP_FAILED) return SpoolError("map", directory);
    file->mapped_ = absl::string_view(static_cast<const char*>(begin), static_cast<size_t>(size));
    return file;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (!mapped_.empty()) munmap(const_cast<char*>(mapped_.data()), mapped_.size());
    close(fd_);
  }

  int64_t size() const { return static_cast<int64_t>(mapped_.size()); }
  // The bytes must have been written: others may have no blocks, and reading them could fail.
  absl::string_view View(int64_t offset, int64_t size) const {
    return mapped_.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
  }
  absl::Status Write(int64_t offset, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), offset);
      if (written < 0 && errno != EINTR) return SpoolError("write to", directory_);
      if (written <= 0) continue;
      bytes.remove_prefix(static_cast<size_t>(written));
      offset += written;
    }
    return absl::OkStatus();
  }

 private:
  File(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}

  const std::string directory_;
  const int fd_;
  absl::string_view mapped_;
};

class UpdateSpool::InMemory final : public HeldBytes {
 public:
  // The size is in the sum already.
  InMemory(std::string bytes, std::shared_ptr<std::atomic<int64_t>> sum)
      : bytes_(std::move(bytes)), sum_(std::move(sum)) {}
  ~InMemory() override { *sum_ -= static_cast<int64_t>(bytes_.size()); }
  absl::string_view bytes() const override { return bytes_; }

 private:
  const std::string bytes_;
  const std::shared_ptr<std::atomic<int64_t>> sum_;
};

class UpdateSpool::InFile final : public HeldBytes {
 public:
  InFile(std::shared_ptr<const File> file, int64_t offset, int64_t size)
      : file_(std::move(file)), bytes_(file_->View(offset, size)) {}
  absl::string_view bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<const File> file_;
  const absl::string_view bytes_;
};

UpdateSpool::UpdateSpool(std::string directory, const SpoolLimits& limits)
    : directory_(std::move(directory)), limits_(limits) {}

absl::StatusOr<UpdateSpool::Place> UpdateSpool::Reserve(int64_t size) {
  absl::MutexLock lock(&mutex_);
  // Nobody else has it: the updates of the rounds before are gone.
  if (file_ != nullptr && file_.use_count() == 1) {
    filled_ = 0;
    if (file_->size() > limits_.file_bytes) file_.reset();
  }
  if (file_ == nullptr || size > file_->size() - filled_) {
    TERSE_ASSIGN_OR_RETURN(file_, File::Make(directory_, std::max(size, limits_.file_bytes)));
    filled_ = 0;
  }
  return Place{file_, std::exchange(filled_, filled_ + size)};
}

absl::StatusOr<std::shared_ptr<const HeldBytes>> UpdateSpool::Keep(std::string bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (in_memory_->fetch_add(size) + size <= limits_.memory_bytes) {
    return std::make_shared<const InMemory>(std::move(bytes), in_memory_);
  }
  *in_memory_ -= size;
  TERSE_ASSIGN_OR_RETURN(const Place place, Reserve(size));
  TERSE_RETURN_IF_ERROR(place.file->Write(place.offset, bytes));
  return std::make_shared<const InFile>(place.file, place.offset, size);
}

}  // namespace terse
