// A process in the sandbox, as the other end of the trainer protocol.
#ifndef TERSE_SANDBOX_SANDBOXED_PEER_H_
#define TERSE_SANDBOX_SANDBOXED_PEER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "core/trainer.h"
#include "sandbox/sandbox.h"
#include "trainer/trainer_peer.h"

namespace terse {

// A process that has no run yet, and the parts of its confinement that are in force. It is killed with the peer, and
// with the thread that started it.
struct SandboxedPeer {
  std::unique_ptr<TrainerPeer> peer;
  Confinement confinement;
};

// Starts the process and hears its confinement, before it is told anything of a run. Statuses of TrySandbox.
absl::StatusOr<SandboxedPeer> StartSandboxedPeer(const SandboxOptions& options);

// A sandboxed process makes its model from these.
struct SandboxedRun {
  RunConfig config;
  Shard shard;         // of the training data; an evaluator has none
  std::string module;  // the bytes of the run's TorchScript file, or nothing
};

// Opens the run there. Statuses of TrainerPeer, and FAILED_PRECONDITION when the model does not fit into the memory
// that the process may have, which bounds what it takes here.
absl::Status OpenSandboxedRun(const SandboxedRun& run, TrainerPeer* peer);

}  // namespace terse

#endif  // TERSE_SANDBOX_SANDBOXED_PEER_H_
