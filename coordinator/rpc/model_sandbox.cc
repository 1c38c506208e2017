#include "coordinator/rpc/model_sandbox.h"

#include <utility>

#include "coordinator/rpc/model_policy.h"
#include "coordinator/rpc/sandboxed_learning.h"
#include "core/cli/checks.h"
#include "core/status.h"
#include "sandbox/sandbox.h"

namespace terse {

void AddModelOptions(CLI::App& app, CoordinatorOptions* options) {
  ModelOptions& models = options->models;
  app.add_option("--allow-models", models.allow,
                 "whose TorchScript models are taken, which are code: socket (who may open the admin service's Unix "
                 "socket), names of operators with commas between them (and the socket), any, none")
      ->check([](const std::string& text) { return std::string(ModelPolicy::Parse(text).status().message()); })
      ->capture_default_str();
  app.add_option("--models-memory", models.memory_mb,
                 "MB that the process of such a model may take beyond the program itself, its test data included")
      ->check(WholeNumber(64, 1 << 24))
      ->capture_default_str();
  app.add_option("--models-seconds", models.seconds,
                 "seconds that checking such a model, one evaluation or one export of it may last")
      ->check(Number(1.0, 604800.0))
      ->capture_default_str();
  // The coordinator gives it, not people.
  app.add_option(kSandboxFlag, options->sandboxed)->group("")->check(OneOf({kOwnNetwork, kSharedNetwork}));
}

ModuleLearningFactory SandboxedModuleLearning(const CoordinatorOptions& options, std::function<bool()> stop) {
  SandboxOptions sandbox;
  sandbox.command_line = options.command_line;
  sandbox.memory_mb = options.models.memory_mb;
  sandbox.seconds = options.models.seconds;
  sandbox.stop = std::move(stop);
  sandbox.role = kSandboxedModelRole;
  const std::vector<std::string> secrets = {options.state_directory, options.transport.tls_directory};
  return [sandbox = std::move(sandbox), data = options.data_directory, secrets](
             const RunConfig& config, const std::string& module,
             const std::function<bool()>& cancelled) -> absl::StatusOr<std::unique_ptr<RunLearning>> {
    TERSE_RETURN_IF_ERROR(CheckOutOfReach(data, secrets, "a user's model", "leave such models away"));
    return MakeSandboxedLearning(sandbox, config, module, cancelled);
  };
}

absl::Status EnterModelSandbox(const CoordinatorOptions& options) {
  SandboxChild child;
  if (!options.data_directory.empty()) child.readable.push_back(options.data_directory);
  child.memory_mb = options.models.memory_mb;
  child.own_network = options.sandboxed == kOwnNetwork;
  return EnterSandbox(child);
}

}  // namespace terse
