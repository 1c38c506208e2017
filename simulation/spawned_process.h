// A process that this one starts, and ends.
#ifndef TERSE_SIMULATION_SPAWNED_PROCESS_H_
#define TERSE_SIMULATION_SPAWNED_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace terse {

// Returns the path of a program or library in the folder that this program is in.
std::string BesideThisProgram(const std::string& name);

// Killed when the object goes. Not thread-safe.
class SpawnedProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;         // the first is the program's path
    std::vector<std::string> environment = {};  // "NAME=VALUE", beyond this process's
    std::string log = {};                       // file that gets both outputs
    bool piped = false;  // in place of the log: input() and output(), and stderr is this process's
  };
  // UNAVAILABLE with the system's reason when it cannot be started.
  static absl::StatusOr<std::unique_ptr<SpawnedProcess>> Start(const Options& options);
  ~SpawnedProcess();
  SpawnedProcess(const SpawnedProcess&) = delete;
  SpawnedProcess& operator=(const SpawnedProcess&) = delete;

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    // the pipe's end to write to; -1: there is none
  int output() const { return output_; }  // the pipe's end to read from; -1: there is none

  // Lets the process read the end of its input.
  void CloseInput();

  // Returns the status that waitpid gives for it; nullopt while it still runs after `timeout`.
  absl::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal);

 private:
  SpawnedProcess() = default;

  pid_t pid_ = 0;
  int input_ = -1, output_ = -1;
  absl::optional<int> ended_;
};

}  // namespace terse

#endif  // TERSE_SIMULATION_SPAWNED_PROCESS_H_
