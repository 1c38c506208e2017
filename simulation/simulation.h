// A simulation: a real coordinator in this process, all clients of its run in a few others, and relays between them.
#ifndef TERSE_SIMULATION_SIMULATION_H_
#define TERSE_SIMULATION_SIMULATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/rpc/run_learning.h"
#include "simulation/relay_processes.h"
#include "simulation/simulation_run.h"
#include "terse/v1/admin.pb.h"
#include "tersectl/report.h"

namespace terse {

struct SimulationOptions {
  SimulatedRun run;
  // coordinator/ is the coordinator's state directory; clients/ has one folder a client, relays/ one a relay.
  std::string directory;
  std::string data;  // directory of the data sets; empty: the embedded one
  std::string device = "auto";
  int64_t processes = 1;  // of clients
  int threads = 1;        // of LibTorch, in each
  // A trainer of the user's own for each process of clients, which trains for one of them after the other: a command
  // that starts it, or descriptors of sockets that are connected to them. Neither: Terse's own.
  std::string trainer;
  std::vector<int> trainer_sockets;
  double trainer_seconds = 3600;  // that a round's training may last
};

struct SimulationResult {
  Summary summary;
  std::vector<v1::Round> rounds;
  std::string model_hash;  // of the newest version, 32 hexadecimal digits
  int64_t clients = 0;     // of the fleet
  int64_t cohort = 0;      // most of them in a round
  double join_seconds = 0;
  double round_seconds = 0;               // median of the committed rounds, from opening to commit
  int64_t coordinator_kib = 0;            // the most memory of this process, in units of 2^10 bytes
  std::vector<int64_t> host_kib = {};     // of each process of clients; empty where none was needed
  std::vector<RelayFigures> relays = {};  // likewise
  int64_t peak_kib() const;               // the sum of all
};

struct SimulationEvents {
  // Several are called from a thread of the simulation, one at a time.
  std::function<void(int64_t joined)> on_joined;
  // For every committed round; `earlier` are those that were there when the simulation started.
  std::function<void(const v1::Round& round, bool earlier)> on_round;
  // The number of times that the simulation was asked to stop: the first lets the open round end, a second one is
  // obeyed at once.
  const std::atomic<int>* stops = nullptr;
};

// Runs the simulation to the end of its run, or goes on with it where it was stopped before. The result depends on the
// run alone, not on `processes`, on other work of the machine, or on a stop that let the round end; after any other end
// the simulation goes on from whole states, with other draws.
//
// CANCELLED once it was stopped. FAILED_PRECONDITION when the directory is in use or has another run or other settings.
// UNAVAILABLE when a relay or a process of clients failed, with its reason: the same call then goes on. Other statuses
// are the coordinator's.
absl::StatusOr<SimulationResult> RunSimulation(const SimulationOptions& options,
                                               const RunLearningFactory& make_learning, const SimulationEvents& events);

}  // namespace terse

#endif  // TERSE_SIMULATION_SIMULATION_H_
