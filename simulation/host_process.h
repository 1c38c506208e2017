// A process of simulated clients, as it is within.
#ifndef TERSE_SIMULATION_HOST_PROCESS_H_
#define TERSE_SIMULATION_HOST_PROCESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/trainer.h"

namespace terse {

// The first argument of such a process, which the simulation starts; people do not.
inline constexpr char kHostCommand[] = "simulated-clients";

// Makes the trainers of a process of clients, once it is set up for training with so many threads; `data` is the
// directory of the data sets, and `device` as for terse-client.
using TrainerMaking =
    std::function<absl::StatusOr<TrainerFactory>(const std::string& data, const std::string& device, int threads)>;

// Serves clients until their run is over: reads the line "join" on standard input before they join, and says on
// standard output, a line each:
//
//   joined N       so many of its clients have joined, the last time all
//   done KIB       the run is over for all of them; the most memory that the process had, in units of 2^10 bytes
//   error REASON   the last line of a process that failed
//
// Ends in order after SIGTERM, or with the process that started it. Returns the exit code.
int RunHostProcess(int argc, char** argv, const TrainerMaking& make_trainers);

}  // namespace terse

#endif  // TERSE_SIMULATION_HOST_PROCESS_H_
