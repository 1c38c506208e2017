// The run of a simulation: a run file's, with a fleet and a cohort of any size.
#ifndef TERSE_SIMULATION_SIMULATION_RUN_H_
#define TERSE_SIMULATION_SIMULATION_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

struct RunChanges {
  int64_t clients = 0;  // of the fleet; 0: as the run file says
  int64_t cohort = 0;   // that take part in a round; 0: as the run file says
  int64_t rounds = 0;   // 0: as the run file says
};

struct SimulatedRun {
  v1::RunConfig config;
  std::string model_file;  // bytes of the file of a model that only the clients' own trainers know; else empty
};

// Reads the run file, makes the changes, and takes the clock out of it: no deadline closes a round, which waits for its
// whole cohort. `model_path` names the safetensors file of an external model; else it is empty. Statuses of
// LoadRunConfig and ValidateNewRun; INVALID_ARGUMENT with the key and the remedy for a run whose rounds are the fastest
// clients' (buffered, over-selection), because how fast a simulated client is says nothing, and for a TorchScript
// model, which the program does not simulate.
absl::StatusOr<SimulatedRun> LoadSimulationRun(const std::string& run_file, const RunChanges& changes,
                                               const std::string& model_path);

}  // namespace terse

#endif  // TERSE_SIMULATION_SIMULATION_RUN_H_
