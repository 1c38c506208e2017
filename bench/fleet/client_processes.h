// The processes of a load's clients, as their parent sees them.
#ifndef TERSE_BENCH_FLEET_CLIENT_PROCESSES_H_
#define TERSE_BENCH_FLEET_CLIENT_PROCESSES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "simulation/spawned_process.h"

namespace terse {

// The sums of what the processes counted (load_process.h).
struct LoadCounts {
  int64_t applied = 0, not_applied = 0, resets = 0;
  int64_t connections = 0, refusals = 0, downloads = 0, models_checked = 0;
  int64_t memory_kib = 0;
};

// From SIGINT or SIGTERM on, every wait returns CANCELLED: who waits then takes its processes along. Not thread-safe.
class ClientProcesses {
 public:
  struct Options {
    std::vector<std::string> servers;  // host:port; clients go to one after the other, and begin anew at the first
    std::string run_file;
    std::string certificates;  // as MakeLoadCertificates made them; empty: cleartext
    int64_t clients = 0;
    int64_t processes = 1;  // with as many clients each as the others, or one fewer; at most `clients`
  };
  // Returns once the updates of all are prepared. What a process says of an error, as UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<ClientProcesses>> Start(const Options& options);

  // Lets them connect.
  absl::Status Go();
  // Waits until a client has all of a version that none had when this was last called. Returns the newest such, or
  // nullopt after `timeout`. UNAVAILABLE as Start.
  absl::StatusOr<absl::optional<int64_t>> AwaitVersion(absl::Duration timeout);
  // Waits until the run is over for every client. DEADLINE_EXCEEDED after `timeout`; UNAVAILABLE as Start.
  absl::StatusOr<LoadCounts> Finish(absl::Duration timeout);

 private:
  struct Process {
    std::unique_ptr<SpawnedProcess> child;
    std::string unread;  // a line that is not whole
    bool ready = false, done = false;
  };

  // Reads what processes said within `timeout`.
  absl::Status Listen(absl::Duration timeout);
  absl::Status Hear(Process* process, const std::string& line);
  // Whether all have said so.
  bool All(bool Process::*said) const;

  std::vector<Process> processes_;
  int64_t newest_ = 0;
  int64_t returned_ = 0;  // the newest that AwaitVersion returned
  LoadCounts counts_;
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_CLIENT_PROCESSES_H_
