// A file descriptor that is closed with its owner.
#ifndef TERSE_TRAINER_OWNED_FILE_H_
#define TERSE_TRAINER_OWNED_FILE_H_

#include <unistd.h>

#include <utility>

namespace terse {

class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int fd) : fd_(fd) {}
  OwnedFile(OwnedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFile() {
    if (fd_ >= 0) close(fd_);
  }

  // -1 while it owns none.
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace terse

#endif  // TERSE_TRAINER_OWNED_FILE_H_
