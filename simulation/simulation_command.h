// The program terse-simulate.
#ifndef TERSE_SIMULATION_SIMULATION_COMMAND_H_
#define TERSE_SIMULATION_SIMULATION_COMMAND_H_

#include "coordinator/rpc/run_learning.h"
#include "simulation/host_process.h"

namespace terse {

// Reads the command line, simulates, and shows the result on standard output. Returns the exit code: 0 when the run is
// finished, 130 when it was stopped, 2 for a command line that is wrong, else 1 with the reason on standard error.
int RunSimulationProgram(int argc, char** argv, const RunLearningFactory& make_learning,
                         const TrainerMaking& make_trainers);

}  // namespace terse

#endif  // TERSE_SIMULATION_SIMULATION_COMMAND_H_
