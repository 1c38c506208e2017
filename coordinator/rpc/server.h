// The coordinator process: options, state directory, runs, the two gRPC servers, health, signals.
#ifndef TERSE_COORDINATOR_RPC_SERVER_H_
#define TERSE_COORDINATOR_RPC_SERVER_H_

#include <string>
#include <vector>

#include "coordinator/rpc/run_learning.h"
#include "proto/keepalive.h"

namespace terse {

struct CoordinatorOptions {
  std::vector<std::string> run_files;  // TOML; none: every run that the state directory holds
  std::string state_directory;
  std::string data_directory;  // for evaluation; empty: the embedded data set
  std::string listen = "127.0.0.1:7700";
  std::string admin = "127.0.0.1:7701";
  std::string ready_file;  // JSON with the two addresses, written once both are served
  std::string log_level = "info";
  double keepalive_seconds = kDefaultKeepaliveSeconds;
};

// Parses argv. Returns an exit code when the process should end at once (--help, a usage error), else -1.
int ParseCoordinatorOptions(int argc, char** argv, CoordinatorOptions* options);

// Serves until an operator shuts the process down, SIGINT, SIGTERM or no run can go on. Returns the exit code: 0 in
// order, 1 on a failure, which is on stderr in one line. A sync that failed ends the process at once, with exit code 1.
//
// The health service (grpc.health.v1) on the clients' address says SERVING for "terse.v1.Fleet/NAME" while that run is
// served, and for "" and "terse.v1.Fleet" while all are.
int RunCoordinator(const CoordinatorOptions& options, const RunLearningFactory& make_learning);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SERVER_H_
