// The client daemon around the session engine: options, signals, reconnection with jittered back-off.
#ifndef TERSE_CLIENT_RPC_DAEMON_H_
#define TERSE_CLIENT_RPC_DAEMON_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/trainer.h"
#include "proto/keepalive.h"

namespace terse {

struct DaemonOptions {
  std::string coordinator;  // host:port
  std::string name;
  std::string state_directory;
  std::string data_directory;  // empty: the embedded data set
  std::string device = "auto";
  int threads = 1;
  double first_backoff_seconds = 0.5;  // from a lost connection to the next attempt; doubles while attempts fail
  std::string log_level = "info";
  std::vector<std::string> allow_models;  // SHA-256 of the TorchScript files that may be trained
  std::string run;                        // to join; empty: the only one that the coordinator has
  bool reset_state = false;               // a damaged state directory is emptied and started afresh
  double keepalive_seconds = kDefaultKeepaliveSeconds;
};

// Exit codes of the daemon.
inline constexpr int kExitFinished = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Parses argv into `options`. Returns an exit code when the process should end at once (--help, a usage error), else
// -1.
int ParseDaemonOptions(int argc, char** argv, DaemonOptions* options);

// Serves the coordinator until the run is finished, SIGINT or SIGTERM. A disk that is full or fails for now is waited
// for; a sync that failed ends the process, so that the next one reads what the disk holds. Returns the exit code.
int RunDaemon(const DaemonOptions& options, TrainerFactory make_trainer);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_DAEMON_H_
