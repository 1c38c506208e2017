#include "net/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace terse {

absl::StatusOr<int64_t> RaiseOpenFiles() {
  // A system may allow more than anybody can count with.
  constexpr rlim_t kPlenty = 1'000'000;
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == 0) return static_cast<int64_t>(std::min(files.rlim_max, kPlenty));
  }
  return absl::UnavailableError(absl::StrCat("the limit of open files cannot be raised: ", std::strerror(errno)));
}

}  // namespace terse
