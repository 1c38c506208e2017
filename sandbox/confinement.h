// Locks a trainer's process in, from inside it. Internal to sandbox.
#ifndef TERSE_SANDBOX_CONFINEMENT_H_
#define TERSE_SANDBOX_CONFINEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trainer/messages.h"

namespace terse {

// Exit code of a trainer that asked for more memory than it may have.
inline constexpr int kExitOutOfMemory = 86;

// Confines this process for good: resource limits, Landlock for the files where the kernel has it, and the filter of
// system calls. `memory_mb` is what it may take beyond what it has; files below `readable` and the system's libraries
// stay readable. `own_network`: whether its network namespace is its own. FAILED_PRECONDITION when one of the essential
// parts cannot be had, or when the process has a second thread, which would stay free; NOT_FOUND and
// others of the system for a `readable` that cannot be opened.
absl::StatusOr<Confinement> Confine(const std::vector<std::string>& readable, int64_t memory_mb, bool own_network);

// The part of Confine that is the kernel's Landlock, for a thread that can gain no rights (PR_SET_NO_NEW_PRIVS) and
// those that it starts. From here on it opens only files below `readable` and the system's, and where the kernel has a
// scope for signals it signals no other process, whatever call it finds for that. Parts that the kernel lacks are
// false. Statuses of Confine.
struct LandlockParts {
  bool files = false;
  bool signals = false;
};
absl::StatusOr<LandlockParts> ConfineByLandlock(const std::vector<std::string>& readable);

}  // namespace terse

#endif  // TERSE_SANDBOX_CONFINEMENT_H_
