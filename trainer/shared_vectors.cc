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

SharedVectors::~SharedVectors() {
  if (mapped()) munmap(floats_, Bytes(static_cast<int64_t>(elements_)));
}

absl::Status SharedVectors::Create(int fd, int64_t elements) {
  const int64_t bytes = Bytes(elements);
  if (ftruncate(fd, bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::InternalError(absl::StrCat("the memory that a trainer shares: ", std::strerror(errno)));
  }
  return Map(fd, elements);
}

absl::Status SharedVectors::Map(int fd, int64_t elements) {
  const int64_t bytes = Bytes(elements);
  struct stat file;
  if (fstat(fd, &file) != 0 || file.st_size != bytes) {
    return absl::InternalError("the memory that a trainer shares has another size");
  }
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", bytes, " bytes of memory for the model: ", std::strerror(errno)));
  }
  floats_ = static_cast<float*>(memory);
  elements_ = elements;
  return absl::OkStatus();
}

}  // namespace terse
