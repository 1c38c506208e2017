#include "trainer/shared_vectors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<OwnedFile> MakeMemoryFile() {
  OwnedFile memory(memfd_create("terse-trainer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory.fd() >= 0) return memory;
  return absl::ResourceExhaustedError(absl::StrCat("no memory to share: ", std::strerror(errno)));
}

SharedVectors::~SharedVectors() {
  if (memory_ != nullptr) munmap(memory_, Bytes(static_cast<int64_t>(elements_), type_));
}

absl::Status SharedVectors::Create(int fd, int64_t elements, VectorType type) {
  const int64_t bytes = Bytes(elements, type);
  if (ftruncate(fd, bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::InternalError(absl::StrCat("the memory that a trainer shares: ", std::strerror(errno)));
  }
  return Map(fd, elements, type);
}

absl::Status SharedVectors::Map(int fd, int64_t elements, VectorType type) {
  const int64_t bytes = Bytes(elements, type);
  struct stat file;
  if (fstat(fd, &file) != 0 || file.st_size != bytes) {
    return absl::InternalError("the memory that a trainer shares has another size");
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", bytes, " bytes of memory for the model: ", std::strerror(errno)));
  }
  memory_ = memory;
  elements_ = elements;
  type_ = type;
  return absl::OkStatus();
}

}  // namespace terse
