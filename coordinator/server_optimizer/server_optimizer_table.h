// The one table of server optimizers. Adding one is a file pair, a row in server_optimizer_table.cc and its name in
// proto/terse/v1/run_config.proto.
#ifndef TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_TABLE_H_
#define TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/server_optimizer/server_optimizer.h"
#include "core/run_config.h"

namespace terse {

// Names of all rows, in table order; the first is "average".
std::vector<std::string> ServerOptimizerNames();

// Null for "average", which takes the average as it is. INVALID_ARGUMENT for an unknown name, with the known ones.
absl::StatusOr<std::unique_ptr<const ServerOptimizer>> MakeServerOptimizer(const ServerOptimizerSpec& spec);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_TABLE_H_
