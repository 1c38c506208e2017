// A sandboxed process, seen from the one that started it. Internal to sandbox/.
#ifndef TERSE_SANDBOX_CHILD_PROCESS_H_
#define TERSE_SANDBOX_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace terse {

// Descriptors of the sandboxed process: its end of the socket pair, and the memory file of SharedVectors.
inline constexpr int kSandboxSocket = 3;
inline constexpr int kSandboxMemory = 4;

// A process that is killed and awaited when the object goes. Not thread-safe.
class ChildProcess {
 public:
  // Starts this program again, with kSandboxFlag behind `command_line`, in namespaces of its own where that is allowed,
  // with nothing but its two descriptors and the part of the environment that settings of libraries are in, and without
  // output. UNAVAILABLE when the system has no more processes.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& command_line, int socket,
                                                             int memory);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Kills it unless it has ended, or does so within a second, and says how it ended: "exited with code 3".
  // `memory_option` is the name of the option that limits its memory.
  std::string End(absl::string_view memory_option);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;  // -1 once it was awaited
  std::string ended_;
};

}  // namespace terse

#endif  // TERSE_SANDBOX_CHILD_PROCESS_H_
