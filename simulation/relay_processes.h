// The relays of a simulation, each a process of the program terse-relay.
#ifndef TERSE_SIMULATION_RELAY_PROCESSES_H_
#define TERSE_SIMULATION_RELAY_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "simulation/serving_process.h"
#include "tersectl/report.h"

namespace terse {

// The figures of one relay: what its clients sent and received, and the most memory that it had.
struct RelayFigures {
  std::string name;
  Summary below;
  int64_t peak_kib = 0;  // in units of 2^10 bytes
};

// Ends its processes in order when it goes. Not thread-safe.
class RelayProcesses {
 public:
  struct Options {
    std::string coordinator;  // host:port of the coordinator above
    std::string run;
    std::string directory;  // of the relays' states, one folder each
    int64_t relays = 1;
    int64_t clients_each = 1;
    std::string mode;  // of terse-relay
  };
  // Starts one relay after the other, so that their order in the run is that of their numbers; returns once all have
  // joined it. `go_on` is asked several times a second, and ends the wait with CANCELLED. UNAVAILABLE with the end of
  // its log when a relay cannot serve.
  static absl::StatusOr<std::unique_ptr<RelayProcesses>> Start(const Options& options,
                                                               const std::function<bool()>& go_on);
  ~RelayProcesses();
  RelayProcesses(const RelayProcesses&) = delete;
  RelayProcesses& operator=(const RelayProcesses&) = delete;

  // Where the relays' clients find them, host:port, in the order of their numbers.
  std::vector<std::string> addresses() const;
  // UNAVAILABLE with the end of its log when a relay has ended by itself.
  absl::Status Check() const;
  // Asks each relay for its figures, in the order of their numbers. Statuses of AdminClient.
  absl::StatusOr<std::vector<RelayFigures>> Figures() const;

 private:
  explicit RelayProcesses(Options options) : options_(std::move(options)) {}
  absl::Status StartNext(const std::function<bool()>& go_on);
  // Returns once the relay has the run, so that clients may join it.
  static absl::Status AwaitRun(const ServingProcess& relay, const std::function<bool()>& go_on);

  const Options options_;
  std::vector<std::unique_ptr<ServingProcess>> processes_;
};

}  // namespace terse

#endif  // TERSE_SIMULATION_RELAY_PROCESSES_H_
