#include "sandbox/sandboxed_peer.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "sandbox/child_process.h"
#include "trainer/external_trainer.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

absl::StatusOr<TrainerConnection> Connect(const SandboxOptions& options) {
  if (options.command_line.empty()) {
    return absl::FailedPreconditionError("the sandbox is this program again, and its command line was not given");
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket for the sandbox: ", std::strerror(errno)));
  }
  TrainerConnection connection = {OwnedFile(ends[0]), nullptr};
  const OwnedFile theirs(ends[1]);
  absl::StatusOr<OwnedFile> memory = MakeMemoryFile();
  if (!memory.ok()) return absl::UnavailableError(memory.status().message());
  connection.memory = *std::move(memory);
  TERSE_ASSIGN_OR_RETURN(connection.process, StartSandboxed(options.command_line, theirs.fd(), connection.memory.fd()));
  return connection;
}

std::string MemoryOption(const PeerRole& role) { return absl::StrCat(role.option, "-memory"); }

PeerOptions OptionsOfPeer(const SandboxOptions& options) {
  PeerOptions peer;
  peer.seconds = options.seconds;
  peer.stop = options.stop;
  const std::string option = MemoryOption(options.role);
  peer.fits = [option, memory_mb = options.memory_mb](const Layout& layout) {
    if (SharedVectors::Bytes(layout.size()) >> 20 < memory_mb) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("a model of ", layout.size(), " elements does not fit into the ",
                                                      memory_mb, " MB of ", option, "; give it more"));
  };
  peer.how_it_ended = [option](int status) { return HowSandboxedEnded(status, option); };
  return peer;
}

}  // namespace

absl::StatusOr<SandboxedPeer> StartSandboxedPeer(const SandboxOptions& options) {
  TERSE_ASSIGN_OR_RETURN(TrainerConnection connection, Connect(options));
  auto peer = std::make_unique<TrainerPeer>(std::move(connection), options.role, OptionsOfPeer(options));
  TERSE_ASSIGN_OR_RETURN(const std::string answer,
                         peer->dialogue().Call(FrameKind::kConfinement, "{}", TrainerPeer::kMostAnswerBytes));
  const absl::StatusOr<Confinement> confinement = FromJson<Confinement>(answer);
  if (!confinement.ok()) return peer->Unreadable("its confinement", confinement.status());
  return SandboxedPeer{std::move(peer), *confinement};
}

absl::Status OpenSandboxedRun(const SandboxedRun& run, TrainerPeer* peer) {
  Dialogue& dialogue = peer->dialogue();
  TERSE_RETURN_IF_ERROR(
      dialogue.Call(FrameKind::kSettings, ToJson(run.config), TrainerPeer::kMostAnswerBytes).status());
  TERSE_RETURN_IF_ERROR(dialogue.Call(FrameKind::kModule, run.module, TrainerPeer::kMostAnswerBytes).status());
  return peer->OpenRun(RequestFor(run.config, run.shard, peer->role()));
}

absl::StatusOr<Confinement> TrySandbox(const SandboxOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const SandboxedPeer sandboxed, StartSandboxedPeer(options));
  return sandboxed.confinement;
}

TrainerFactory SandboxedTrainerFactory(SandboxOptions options) {
  return [options = std::move(options)](const RunConfig& config, const Shard& shard,
                                        absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(SandboxedPeer sandboxed, StartSandboxedPeer(options));
    TERSE_RETURN_IF_ERROR(OpenSandboxedRun({config, shard, std::string(module)}, sandboxed.peer.get()));
    return MakeExternalTrainer(std::move(sandboxed.peer));
  };
}

}  // namespace terse
