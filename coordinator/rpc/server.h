// The coordinator process: options, state directory, engine, the two gRPC servers, signals.
#ifndef TERSE_COORDINATOR_RPC_SERVER_H_
#define TERSE_COORDINATOR_RPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/rpc/admin_service.h"
#include "core/layout.h"
#include "core/run_config.h"
#include "core/trainer.h"

namespace terse {

struct CoordinatorOptions {
  std::string run_file;  // TOML; may be empty when the state directory holds a run
  std::string state_directory;
  std::string data_directory;  // for evaluation; empty: the embedded data set
  std::string listen = "127.0.0.1:7700";
  std::string admin = "127.0.0.1:7701";
  std::string ready_file;  // JSON with the two addresses, written once both are served
  std::string log_level = "info";
};

// What the coordinator needs of a learning library. The engine itself needs none.
struct LearningHooks {
  std::function<absl::StatusOr<Layout>(const RunConfig&)> layout;
  std::function<absl::StatusOr<std::vector<float>>(const RunConfig&)> initial_weights;
  std::function<absl::StatusOr<std::unique_ptr<Evaluator>>(const RunConfig&, const std::string& data_directory)>
      evaluator;
  std::function<absl::StatusOr<std::string>(const RunConfig&, v1::ExportRequest::Format, absl::Span<const float>)>
      exporter;
};

// Parses argv. Returns an exit code when the process should end at once (--help, a usage error), else -1.
int ParseCoordinatorOptions(int argc, char** argv, CoordinatorOptions* options);

// Serves until an operator shuts the process down, SIGINT or SIGTERM. Returns the exit code: 0 in order, 1 on a
// failure, which is on stderr in one line.
int RunCoordinator(const CoordinatorOptions& options, const LearningHooks& hooks);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SERVER_H_
