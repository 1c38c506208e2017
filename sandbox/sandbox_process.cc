#include "sandbox/sandbox_process.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "sandbox/confinement.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

constexpr absl::Duration kLingers = absl::Seconds(1);

absl::optional<Dialogue::Refusal> ReadFailure(absl::string_view body) {
  Failure failure;
  if (!DecodeMessage(body, &failure)) return absl::nullopt;
  return Dialogue::Refusal{static_cast<absl::StatusCode>(failure.code), failure.message, failure.details};
}

}  // namespace

absl::StatusOr<std::unique_ptr<SandboxProcess>> SandboxProcess::Start(const SandboxOptions& options) {
  if (options.command_line.empty()) {
    return absl::FailedPreconditionError("the sandbox is this program again, and its command line was not given");
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket for the sandbox: ", std::strerror(errno)));
  }
  std::unique_ptr<SandboxProcess> sandbox(new SandboxProcess(options, OwnedFile(ends[0])));
  absl::Status started = sandbox->Launch(ends[1]);
  close(ends[1]);
  if (started.ok()) started = sandbox->Hear();
  if (!started.ok()) return started;
  return sandbox;
}

SandboxProcess::SandboxProcess(const SandboxOptions& options, OwnedFile socket)
    : options_(options),
      dialogue_(std::move(socket),
                {absl::StrCat("the sandboxed ", options.words.worker), "; its model or its code is not to be trusted",
                 options.words.seconds, options.seconds, options.stop, [this](bool at_once) { return End(at_once); },
                 ReadFailure, [](bool go_on) { return EncodeMessage(StepAnswer{go_on}); },
                 [](absl::string_view body) { return body.empty(); }}) {}

std::string SandboxProcess::End(bool at_once) {
  const int status = process_->End(at_once ? absl::ZeroDuration() : kLingers);
  return HowSandboxedEnded(status, options_.words.memory);
}

absl::StatusOr<Layout> SandboxProcess::TakeLayout(const std::vector<Layout::Entry>& entries) {
  for (const Layout::Entry& entry : entries) {
    if (entry.kind != TensorKind::kParameter && entry.kind != TensorKind::kBuffer) {
      return Nonsense("with a tensor of no kind");
    }
  }
  absl::StatusOr<Layout> layout = Layout::Create(entries);
  if (!layout.ok()) return Nonsense(absl::StrCat("with a model that is none: ", layout.status().message()));
  if (SharedVectors::Bytes(layout->size()) >> 20 >= options_.memory_mb) {
    return absl::FailedPreconditionError(absl::StrCat("a model of ", layout->size(), " elements does not fit into the ",
                                                      options_.memory_mb, " MB of ", options_.words.memory,
                                                      "; give it more"));
  }
  return layout;
}

absl::Status SandboxProcess::Launch(int other_end) {
  memory_ = OwnedFile(memfd_create("terse-sandbox", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory_.fd() < 0) return absl::UnavailableError(absl::StrCat("no memory to share: ", std::strerror(errno)));
  TERSE_ASSIGN_OR_RETURN(process_, StartSandboxed(options_.command_line, other_end, memory_.fd()));
  return absl::OkStatus();
}

// The first answer, before anything of the run is in the process.
absl::Status SandboxProcess::Hear() {
  TERSE_ASSIGN_OR_RETURN(const std::string hello, dialogue_.Hear(kMostResultBytes));
  return DecodeMessage(hello, &confinement_) ? absl::OkStatus() : Nonsense("no confinement");
}

}  // namespace terse
