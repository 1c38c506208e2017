#include "coordinator/rpc/run_check.h"

#include <memory>
#include <string>
#include <utility>

#include "coordinator/rpc/model_sandbox.h"
#include "coordinator/rpc/run_registry.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/temporary_directory.h"

namespace terse {

absl::Status CheckRuns(const CoordinatorOptions& options, const RunLearningFactory& make_learning, std::ostream& out) {
  TERSE_ASSIGN_OR_RETURN(const std::string path, NewTemporaryName("terse-check"));
  const TemporaryDirectory state(path);
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(state.path()));
  SystemClock clock;
  RunRegistry::Options registry;
  registry.state_directory = state.path();
  registry.data_directory = options.data_directory;
  registry.make_learning = make_learning;
  registry.make_module_learning = SandboxedModuleLearning(options, [] { return false; });
  registry.clock = &clock;
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunRegistry> runs,
                         RunRegistry::Open(std::move(registry), options.run_files));
  for (const RunHost* run : runs->runs()) {
    out << "run " << run->name() << " can be served: " << run->codec().layout().parameters() << " parameters, codec "
        << run->config().codec.name << "\n";
  }
  return absl::OkStatus();
}

}  // namespace terse
