// The daemon's part of the sandbox (sandbox/sandbox.h): options, and what the log says.
#ifndef TERSE_CLIENT_RPC_SANDBOX_SETUP_H_
#define TERSE_CLIENT_RPC_SANDBOX_SETUP_H_

#include <atomic>

#include "absl/status/statusor.h"
#include "client/rpc/connection_loop.h"
#include "core/trainer.h"

namespace terse {

// For a daemon with options.sandbox: tries the sandbox, logs what of it is in force, and returns the factory whose
// trainers work in it and stop when `stop` becomes true. FAILED_PRECONDITION when this machine cannot confine them, or
// when what they may read, the data, holds what they must not: the state, the certificate or the invitation. Otherwise
// as TrySandbox.
absl::StatusOr<TrainerFactory> SetUpSandbox(const DaemonOptions& options, const std::atomic<bool>* stop);

// For a process with options.sandbox_trainer, before it does anything else. Statuses of EnterSandbox.
absl::Status EnterSandbox(const DaemonOptions& options);

}  // namespace terse

#endif  // TERSE_CLIENT_RPC_SANDBOX_SETUP_H_
