// A process that this one started, and how it ended.
#ifndef TERSE_TRAINER_CHILD_PROCESS_H_
#define TERSE_TRAINER_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace terse {

// Is killed and awaited when the object goes. Not thread-safe.
class ChildProcess {
 public:
  // `leads_group`: the process leads a group of processes, all of which are killed.
  explicit ChildProcess(pid_t pid, bool leads_group = false) : pid_(pid), leads_group_(leads_group) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits until it ends by itself, kills it when it has not after that long, and returns its status, as waitpid does.
  int End(absl::Duration lingers);

 private:
  void Kill();

  const pid_t pid_;
  const bool leads_group_;
  absl::optional<int> status_;  // of the ended process
};

// "was ended by signal 9" or "exited with code 3".
std::string HowItEnded(int status);

}  // namespace terse

#endif  // TERSE_TRAINER_CHILD_PROCESS_H_
