// Users' models in a coordinator's process: the options about them, and the sandbox in which they are loaded and run
// (sandboxed_learning.h).
#ifndef TERSE_COORDINATOR_RPC_MODEL_SANDBOX_H_
#define TERSE_COORDINATOR_RPC_MODEL_SANDBOX_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/rpc/run_learning.h"
#include "coordinator/rpc/server.h"
#include "core/run_config.h"

namespace terse {

void AddModelOptions(CLI::App& app, CoordinatorOptions* options);

// Returns the factory for RunRegistry::Options::make_module_learning. `stop` says whether the process should end.
// Statuses of MakeSandboxedLearning; FAILED_PRECONDITION when --data, which the model may read, holds the state or the
// certificate.
using ModuleLearningFactory = std::function<absl::StatusOr<std::unique_ptr<RunLearning>>(
    const RunConfig& config, const std::string& module, const std::function<bool()>& cancelled)>;
ModuleLearningFactory SandboxedModuleLearning(const CoordinatorOptions& options, std::function<bool()> stop);

// Confines a process that is such a sandbox; it calls this before anything else. Statuses of EnterSandbox.
absl::Status EnterModelSandbox(const CoordinatorOptions& options);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_MODEL_SANDBOX_H_
