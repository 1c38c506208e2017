#include "sandbox/sandbox_process.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "core/status_details.h"
#include "sandbox/confinement.h"
#include "sandbox/shared_vectors.h"

namespace terse {
namespace {

constexpr uint64_t kMostFailureBytes = 16 << 10;
constexpr size_t kMostMessage = 1000;

// Takes out of a text of the process what a terminal would obey, and line ends unless `lines` may stay.
std::string Printable(absl::string_view text, bool lines) {
  std::string printable(text);
  for (char& c : printable) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) && !(lines && c == '\n')) c = '?';
  }
  return printable;
}

}  // namespace

// How long one call may last.
class SandboxProcess::Deadline {
 public:
  explicit Deadline(const SandboxOptions& options)
      : options_(options), until_(absl::Now() + absl::Seconds(options.seconds)) {}

  // The process was told to stop.
  void BeginGrace() {
    if (stopping_) return;
    stopping_ = true;
    until_ = std::min(until_, absl::Now() + absl::Seconds(kStopGraceSeconds));
  }
  // For Channel: OK while there is time.
  absl::Status Check() {
    if (options_.stop && options_.stop()) BeginGrace();
    if (absl::Now() < until_) return absl::OkStatus();
    return absl::DeadlineExceededError(
        stopping_ ? absl::StrCat("did not stop within ", kStopGraceSeconds, " seconds")
                  : absl::StrCat("took more than the ", options_.seconds, " seconds of ", options_.words.seconds));
  }

 private:
  const SandboxOptions& options_;
  absl::Time until_;
  bool stopping_ = false;
};

absl::StatusOr<std::unique_ptr<SandboxProcess>> SandboxProcess::Start(const SandboxOptions& options) {
  if (options.command_line.empty()) {
    return absl::FailedPreconditionError("the sandbox is this program again, and its command line was not given");
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket for the sandbox: ", std::strerror(errno)));
  }
  std::unique_ptr<SandboxProcess> sandbox(new SandboxProcess(options, ends[0]));
  absl::Status started = sandbox->Launch(ends[1]);
  close(ends[1]);
  if (started.ok()) started = sandbox->Hear();
  if (!started.ok()) return started;
  return sandbox;
}

SandboxProcess::~SandboxProcess() {
  if (memory_ >= 0) close(memory_);
}

absl::StatusOr<std::string> SandboxProcess::Call(FrameKind kind, absl::string_view body, uint64_t most,
                                                 const std::function<bool()>& keep_going) {
  TERSE_RETURN_IF_ERROR(lost_);
  Deadline deadline(options_);
  const Channel::Patience patience = [&] { return deadline.Check(); };
  if (const absl::Status sent = channel_.Send(kind, body, patience); !sent.ok()) return Lose(sent);
  return Await(most, keep_going, &deadline);
}

absl::Status SandboxProcess::Nonsense(absl::string_view answer) {
  process_ = nullptr;
  return lost_ = absl::InternalError(absl::StrCat("the sandboxed ", options_.words.worker, " answered ", answer,
                                                  "; its model or its code is not to be trusted"));
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
  memory_ = memfd_create("terse-sandbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory_ < 0) return absl::UnavailableError(absl::StrCat("no memory to share: ", std::strerror(errno)));
  TERSE_ASSIGN_OR_RETURN(process_, ChildProcess::Start(options_.command_line, other_end, memory_));
  return absl::OkStatus();
}

// The first answer, before anything of the run is in the process.
absl::Status SandboxProcess::Hear() {
  Deadline deadline(options_);
  TERSE_ASSIGN_OR_RETURN(const std::string hello, Await(kMostResultBytes, nullptr, &deadline));
  return DecodeMessage(hello, &confinement_) ? absl::OkStatus() : Nonsense("no confinement");
}

absl::StatusOr<std::string> SandboxProcess::Await(uint64_t most, const std::function<bool()>& keep_going,
                                                  Deadline* deadline) {
  const Channel::Patience patience = [&] { return deadline->Check(); };
  bool told_to_stop = false;
  while (true) {
    absl::StatusOr<Channel::Frame> frame = channel_.Receive(std::max(most, kMostFailureBytes), patience);
    if (!frame.ok()) return Lose(frame.status());
    if (frame->kind == FrameKind::kStep && frame->body.empty() && keep_going && !told_to_stop) {
      told_to_stop = !keep_going();
      if (told_to_stop) deadline->BeginGrace();
      const std::string answer = EncodeMessage(StepAnswer{!told_to_stop});
      if (const absl::Status sent = channel_.Send(FrameKind::kStepAnswer, answer, patience); !sent.ok()) {
        return Lose(sent);
      }
    } else if (frame->kind == FrameKind::kDone && frame->body.size() <= most) {
      return std::move(frame->body);
    } else if (frame->kind == FrameKind::kFailed) {
      return Failed(frame->body, told_to_stop);
    } else {
      return Nonsense("with a message that it may not send");
    }
  }
}

// The process says what went wrong. Codes that the daemon acts on without looking further are not for it to give.
absl::Status SandboxProcess::Failed(absl::string_view body, bool told_to_stop) {
  Failure failure;
  if (!DecodeMessage(body, &failure)) return Nonsense("with a failure that cannot be read");
  absl::StatusCode code = static_cast<absl::StatusCode>(failure.code);
  const bool known = failure.code > 0 && failure.code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  if (!known || code == absl::StatusCode::kUnknown || (code == absl::StatusCode::kCancelled && !told_to_stop)) {
    code = absl::StatusCode::kInternal;
  }
  const std::string message = Printable(absl::string_view(failure.message).substr(0, kMostMessage), /*lines=*/false);
  return WithDetails(absl::Status(code, message), Printable(failure.details, /*lines=*/true));
}

// After `status` of the channel.
absl::Status SandboxProcess::Lose(const absl::Status& status) {
  if (absl::IsOutOfRange(status)) return Nonsense(absl::StrCat("with ", status.message()));
  const std::string how =
      absl::IsAborted(status) ? process_->End(options_.words.memory) : std::string(status.message());
  process_ = nullptr;
  return lost_ = absl::UnavailableError(absl::StrCat("the sandboxed ", options_.words.worker, " ", how));
}

}  // namespace terse
