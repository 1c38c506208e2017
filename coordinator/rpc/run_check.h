// Whether a coordinator could serve a run, found out before a fleet waits for it.
#ifndef TERSE_COORDINATOR_RPC_RUN_CHECK_H_
#define TERSE_COORDINATOR_RPC_RUN_CHECK_H_

#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "coordinator/rpc/server.h"

namespace terse {

// Opens each run of `options.run_files`, by itself, as a coordinator with these options would at its first start: reads
// the data, makes the model, and checks codecs and the sizes of messages. The run is made in a temporary directory,
// which is gone when this returns; nobody can connect. Writes a line for each run to `out`. `cancelled` is asked
// between two runs: CANCELLED. INVALID_ARGUMENT for a run whose model is a TorchScript file: that comes with `tersectl
// run create`, which checks both. Otherwise the status with which the start would have failed.
absl::Status CheckRuns(const CoordinatorOptions& options, const RunLearningFactory& make_learning,
                       const std::function<bool()>& cancelled, std::ostream& out);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_CHECK_H_
