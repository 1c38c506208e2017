// The options of an evaluator of the operator's own, for models that only the clients' trainers know.
#ifndef TERSE_COORDINATOR_RPC_EVALUATOR_SETUP_H_
#define TERSE_COORDINATOR_RPC_EVALUATOR_SETUP_H_

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "coordinator/rpc/external_learning.h"
#include "coordinator/rpc/server.h"

namespace terse {

// --evaluator, --evaluator-socket, --evaluator-seconds.
void AddEvaluatorOptions(CLI::App& app, CoordinatorOptions* options);

// Returns the factory for RunRegistry::Options::make_evaluator; empty where no evaluator is given. `stop` says whether
// the process should end. FAILED_PRECONDITION when the socket cannot be had.
absl::StatusOr<EvaluatorFactory> SetUpEvaluators(const CoordinatorOptions& options, const std::function<bool()>& stop);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_EVALUATOR_SETUP_H_
