// How many files and sockets this process may have open.
#ifndef TERSE_NET_OPEN_FILES_H_
#define TERSE_NET_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace terse {

// Raises the soft limit of open files to the hard one, which is much larger on most systems, and returns it. A process
// that others connect to calls it at its start. UNAVAILABLE with the system's reason.
absl::StatusOr<int64_t> RaiseOpenFiles();

}  // namespace terse

#endif  // TERSE_NET_OPEN_FILES_H_
