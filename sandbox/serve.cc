// The sandboxed process's side: confine, make, serve.
#include <unistd.h>

#include <utility>

#include "core/status.h"
#include "sandbox/child_process.h"
#include "sandbox/confinement.h"
#include "sandbox/sandbox.h"
#include "trainer/serve_peer.h"
#include "trainer/serve_trainer.h"

namespace terse {

absl::Status EnterSandbox(const SandboxChild& child) {
  const absl::StatusOr<Confinement> confinement = Confine(child.readable, child.memory_mb, child.own_network);
  Channel channel{OwnedFile(dup(kSandboxSocket))};
  TERSE_ASSIGN_OR_RETURN(const Channel::Frame request, channel.Receive(kAnySize, nullptr));
  if (request.kind != FrameKind::kConfinement) {
    return absl::AbortedError("the process that started this one did not ask for its confinement");
  }
  if (confinement.ok()) return SendAnswer(ToJson(*confinement), &channel);
  SendAnswer(confinement.status(), &channel).IgnoreError();
  return confinement.status();
}

void ServeSandboxed(PeerService* service) { ServePeer(OwnedFile(kSandboxSocket), OwnedFile(kSandboxMemory), service); }

int ServeSandbox(const TrainerFactory& make_trainer) {
  ServeTrainer(
      OwnedFile(kSandboxSocket), "terse",
      [&](const RunOpening& opening) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
        if (!opening.settings.has_value()) return absl::FailedPreconditionError("no settings of the run were given");
        return make_trainer(*opening.settings, opening.request.shard, opening.module);
      },
      OwnedFile(kSandboxMemory));
  return 0;
}

}  // namespace terse
