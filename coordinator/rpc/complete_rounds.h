// Which rounds have all their figures: what tells operators of rounds tells them once.
#ifndef TERSE_COORDINATOR_RPC_COMPLETE_ROUNDS_H_
#define TERSE_COORDINATOR_RPC_COMPLETE_ROUNDS_H_

#include <cstddef>
#include <vector>

#include "coordinator/rpc/run_host.h"
#include "storage/run_records.h"

namespace terse {

bool HasEnded(RunState state);

// Returns how many of the rounds, from the first on, are settled and have every figure that they will have, an
// evaluation that is due included. The newest model's round waits for its evaluation, for the next model or for the
// run's end, where somebody evaluates, because a run that ends early has that model evaluated. `run_ended` and `view`
// were read before the rounds: what the view does not say yet of a round, a later call says.
size_t CountComplete(const RunHost& run, const EngineView& view, const std::vector<RoundRecord>& rounds,
                     bool run_ended);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_COMPLETE_ROUNDS_H_
