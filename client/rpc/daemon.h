// The client daemon around the session engine: options, signals, logs.
#ifndef TERSE_CLIENT_RPC_DAEMON_H_
#define TERSE_CLIENT_RPC_DAEMON_H_

#include "absl/status/statusor.h"
#include "client/rpc/connection_loop.h"

namespace terse {

// Exit codes of the daemon.
inline constexpr int kExitFinished = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Parses argv into `options`. With --sandbox, trainers work in processes that are this program again: in those this
// call confines the process, so main must not start threads before it, and RunDaemon then serves the trainer. Returns
// an exit code when the process should end at once (--help, a usage error), else -1.
int ParseDaemonOptions(int argc, char** argv, DaemonOptions* options);

// Checks the protection of the connections and the name, before the state directory is touched. With TLS the name is
// the certificate's, and is filled in where none is given. A certificate that has expired, or will begin once the clock
// is right, is waited for later. FAILED_PRECONDITION, INVALID_ARGUMENT with what is wrong; those of ReadTlsDirectory.
absl::Status CheckWhoIAm(DaemonOptions* options);

// Serves the coordinator until the run is finished, SIGINT or SIGTERM. A disk that is full or fails for now is waited
// for; a sync that failed ends the process, so that the next one reads what the disk holds. An error in place of
// trainers is reported before anything else is done. Returns the exit code.
int RunDaemon(DaemonOptions options, absl::StatusOr<TrainerFactory> make_trainer);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_DAEMON_H_
