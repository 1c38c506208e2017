// The run of a simulation: a run file's, with a fleet and a cohort of any size.
#ifndef TERSE_SIMULATION_SIMULATION_RUN_H_
#define TERSE_SIMULATION_SIMULATION_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

// The deadline of a simulation's rounds, the largest that a run may have: a year.
inline constexpr int64_t kSimulatedDeadlineSeconds = 31'536'000;

struct RunChanges {
  int64_t clients = 0;  // of the fleet; 0: as the run file says
  int64_t cohort = 0;   // that take part in a round; 0: as the run file says
  int64_t rounds = 0;   // 0: as the run file says
  int64_t relays = 0;   // between the coordinator and the clients; 0: the clients are the coordinator's
  std::string relay_mode = "recompress";  // terse-relay's
};

struct SimulatedRun {
  v1::RunConfig config;    // the coordinator's, whose clients are the relays where there are any
  int64_t clients = 0;     // of the fleet
  int64_t relays = 0;      // with as many clients each; 0: none
  std::string relay_mode;  // of all of them
  std::string model_file;  // bytes of the file of a model that only the clients' own trainers know; else empty
};

// Reads the run file, makes the changes, and takes the clock out of it: no deadline closes a round, which waits for its
// whole cohort. `model_path` names the safetensors file of an external model; else it is empty. Statuses of
// LoadRunConfig and ValidateNewRun; INVALID_ARGUMENT with the key and the remedy for a run whose rounds are the fastest
// clients' (buffered, over-selection), because how fast a simulated client is says nothing, for a TorchScript model,
// which the program does not simulate, and for relays that cannot have as many clients each or could not ask all of
// them.
absl::StatusOr<SimulatedRun> LoadSimulationRun(const std::string& run_file, const RunChanges& changes,
                                               const std::string& model_path);

}  // namespace terse

#endif  // TERSE_SIMULATION_SIMULATION_RUN_H_
