// A sandboxed process, seen from the one that started it. Internal to sandbox/.
#ifndef TERSE_SANDBOX_CHILD_PROCESS_H_
#define TERSE_SANDBOX_CHILD_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trainer/child_process.h"

namespace terse {

// Descriptors of the sandboxed process: its end of the socket pair, and the memory file of SharedVectors.
inline constexpr int kSandboxSocket = 3;
inline constexpr int kSandboxMemory = 4;

// Starts this program again, with kSandboxFlag behind `command_line`, in namespaces of its own where that is allowed,
// with nothing but its two descriptors and the part of the environment that settings of libraries are in, and without
// output. UNAVAILABLE when the system has no more processes.
absl::StatusOr<std::unique_ptr<ChildProcess>> StartSandboxed(const std::vector<std::string>& command_line, int socket,
                                                             int memory);

// As HowItEnded, of such a process; `memory_option` is the name of the option that limits its memory.
std::string HowSandboxedEnded(int status, absl::string_view memory_option);

}  // namespace terse

#endif  // TERSE_SANDBOX_CHILD_PROCESS_H_
