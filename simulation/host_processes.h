// The processes of a simulation's clients, as their parent sees them.
#ifndef TERSE_SIMULATION_HOST_PROCESSES_H_
#define TERSE_SIMULATION_HOST_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "simulation/spawned_process.h"

namespace terse {

// Ends its processes in order when it goes. Not thread-safe.
class HostProcesses {
 public:
  struct Options {
    std::vector<std::string> arguments;  // that all get, behind kHostCommand
    int64_t clients = 1;
    int64_t processes = 1;                  // with as many clients each as the others, or one fewer; at most `clients`
    std::vector<int> trainer_sockets = {};  // of each process; empty: none
  };
  // UNAVAILABLE with the system's reason when one cannot be started.
  static absl::StatusOr<std::unique_ptr<HostProcesses>> Start(const Options& options);
  HostProcesses() = default;
  ~HostProcesses();
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  // Lets one process after the other bring its clients in, so that their order is that of their numbers. `go_on` is
  // asked several times a second, and ends the wait with CANCELLED; `on_joined` hears how many have joined in all.
  absl::Status Join(const std::function<bool()>& go_on, const std::function<void(int64_t joined)>& on_joined);
  // Reads what they said within `timeout`. UNAVAILABLE with its reason when one of them has failed, with how it ended
  // when it was killed.
  absl::Status Listen(absl::Duration timeout);
  // Whether the run is over for all clients.
  bool done() const;
  // The most memory that each had, in units of 2^10 bytes. Once done.
  std::vector<int64_t> peak_kib() const;

 private:
  struct Process {
    std::unique_ptr<SpawnedProcess> child;
    int64_t first = 0, count = 0;
    std::string unread = {};  // a line that is not whole
    int64_t joined = 0;
    int64_t peak_kib = 0;
    bool done = false;
  };

  absl::Status Hear(Process* process, const std::string& line) const;
  // Why a process that said nothing of it has ended.
  static absl::Status Ended(Process* process);

  std::vector<Process> processes_;
};

}  // namespace terse

#endif  // TERSE_SIMULATION_HOST_PROCESSES_H_
