#include "client/rpc/sandbox_setup.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/log_components.h"
#include "core/log/log.h"
#include "core/status.h"
#include "sandbox/sandbox.h"

namespace terse {
namespace {

void LogConfinement(const DaemonOptions& options, const Confinement& confinement) {
  const LogFields fields = {options.run, 0, options.name};
  Log(LogLevel::kInfo, kDaemonLog, fields,
      absl::StrCat("sandbox: training makes no sockets, programs, processes or files, has ", options.sandbox_memory_mb,
                   " MB of memory and ", options.sandbox_seconds, " s a call, and ",
                   confinement.own_network ? "a network namespace of its own"
                                           : "no network namespace of its own, because this user may not make one"));
  if (confinement.landlock) {
    Log(LogLevel::kInfo, kDaemonLog, fields,
        absl::StrCat("sandbox: of the files it reads ",
                     options.data_directory.empty() ? "no data" : options.data_directory,
                     " and the system's libraries alone (Landlock)",
                     confinement.signal_scope ? ", and the kernel too keeps its signals inside" : ""));
  } else {
    Log(LogLevel::kWarn, kDaemonLog, fields,
        absl::StrCat(
            "sandbox: there is no Landlock here (Linux 5.13, and allowed to this process), so training can "
            "READ all files that this user can, ",
            options.transport.tls_directory.empty() ? options.state_directory : options.transport.tls_directory,
            " among them"));
  }
}

}  // namespace

absl::StatusOr<TrainerFactory> SetUpSandbox(const DaemonOptions& options, const std::atomic<bool>* stop) {
  TERSE_RETURN_IF_ERROR(CheckOutOfReach(options.data_directory,
                                        {options.state_directory, options.transport.tls_directory, options.invitation},
                                        "sandboxed training", "leave --sandbox away"));
  SandboxOptions sandbox;
  sandbox.command_line = options.command_line;
  sandbox.memory_mb = options.sandbox_memory_mb;
  sandbox.seconds = options.sandbox_seconds;
  sandbox.stop = [stop] { return stop->load(); };
  TERSE_ASSIGN_OR_RETURN(const Confinement confinement, TrySandbox(sandbox));
  LogConfinement(options, confinement);
  return SandboxedTrainerFactory(std::move(sandbox));
}

absl::Status EnterSandbox(const DaemonOptions& options) {
  SandboxChild child;
  if (!options.data_directory.empty()) child.readable.push_back(options.data_directory);
  child.memory_mb = options.sandbox_memory_mb;
  child.own_network = options.sandbox_trainer == kOwnNetwork;
  return EnterSandbox(child);
}

}  // namespace terse
