// The client's side: a trainer whose work is done in another process, which is not believed.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status.h"
#include "sandbox/channel.h"
#include "sandbox/child_process.h"
#include "sandbox/confinement.h"
#include "sandbox/messages.h"
#include "sandbox/sandbox.h"
#include "sandbox/shared_vectors.h"

namespace terse {
namespace {

constexpr uint64_t kMostFailureBytes = 16 << 10;
constexpr uint64_t kMostLayoutBytes = 16 << 20;
constexpr uint64_t kMostResultBytes = 64;
// Of a saved state: optimizers have up to two moments for each element, and there may be a hidden state beside them.
constexpr uint64_t kMostStateBytes = 64 << 20;
constexpr uint64_t kMostStateBytesPerElement = 64;
constexpr size_t kMostMessage = 1000;

// Of a text that a trainer wrote: one line, without what a terminal would obey.
std::string OneLine(absl::string_view text) {
  std::string line(text.substr(0, kMostMessage));
  for (char& c : line) c = absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  return line;
}

// How long one call may last.
class Deadline {
 public:
  explicit Deadline(const SandboxOptions& options)
      : options_(options), until_(absl::Now() + absl::Seconds(options.seconds)) {}

  // The trainer was told to stop.
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
                  : absl::StrCat("took more than the ", options_.seconds, " seconds of --sandbox-seconds"));
  }

 private:
  const SandboxOptions& options_;
  absl::Time until_;
  bool stopping_ = false;
};

// A trainer's process and the talk with it.
class Sandbox {
 public:
  // Statuses of TrySandbox.
  static absl::StatusOr<std::unique_ptr<Sandbox>> Start(const SandboxOptions& options) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::UnavailableError(absl::StrCat("no socket for the sandbox: ", std::strerror(errno)));
    }
    std::unique_ptr<Sandbox> sandbox(new Sandbox(options, ends[0]));
    absl::Status started = sandbox->Launch(ends[1]);
    close(ends[1]);
    if (started.ok()) started = sandbox->Hear();
    if (!started.ok()) return started;
    return sandbox;
  }
  ~Sandbox() {
    if (memory_ >= 0) close(memory_);
  }

  const Confinement& confinement() const { return confinement_; }
  int memory() const { return memory_; }
  const SandboxOptions& options() const { return options_; }

  // Asks, and waits for the answer, of at most `most` bytes. Statuses of SandboxedTrainerFactory's methods.
  absl::StatusOr<std::string> Call(FrameKind kind, absl::string_view body, uint64_t most,
                                   const std::function<bool()>& keep_going = nullptr) {
    TERSE_RETURN_IF_ERROR(lost_);
    Deadline deadline(options_);
    const Channel::Patience patience = [&] { return deadline.Check(); };
    if (const absl::Status sent = channel_.Send(kind, body, patience); !sent.ok()) return Lose(sent);
    return Await(most, keep_going, &deadline);
  }

  // The process answered `what`, which is wrong: it is not asked again.
  absl::Status Nonsense(absl::string_view what) {
    process_ = nullptr;
    return lost_ = absl::InternalError(
               absl::StrCat("the sandboxed trainer answered ", what, "; its model or its code is not to be trusted"));
  }

 private:
  Sandbox(const SandboxOptions& options, int socket) : options_(options), channel_(socket) {}

  absl::Status Launch(int other_end) {
    memory_ = memfd_create("terse-sandbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory_ < 0) return absl::UnavailableError(absl::StrCat("no memory to share: ", std::strerror(errno)));
    TERSE_ASSIGN_OR_RETURN(process_, ChildProcess::Start(options_.command_line, other_end, memory_));
    return absl::OkStatus();
  }

  // The first answer, before anything of the run is in the process.
  absl::Status Hear() {
    Deadline deadline(options_);
    TERSE_ASSIGN_OR_RETURN(const std::string hello, Await(kMostResultBytes, nullptr, &deadline));
    return DecodeMessage(hello, &confinement_) ? absl::OkStatus() : Nonsense("no confinement");
  }

  absl::StatusOr<std::string> Await(uint64_t most, const std::function<bool()>& keep_going, Deadline* deadline) {
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

  // What the trainer says went wrong. Codes that the daemon acts on without looking further are not for it to give.
  absl::Status Failed(absl::string_view body, bool told_to_stop) {
    Failure failure;
    if (!DecodeMessage(body, &failure)) return Nonsense("with a failure that cannot be read");
    absl::StatusCode code = static_cast<absl::StatusCode>(failure.code);
    const bool known = failure.code > 0 && failure.code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
    if (!known || code == absl::StatusCode::kUnknown || (code == absl::StatusCode::kCancelled && !told_to_stop)) {
      code = absl::StatusCode::kInternal;
    }
    return absl::Status(code, OneLine(failure.message));
  }

  // After `status` of the channel.
  absl::Status Lose(const absl::Status& status) {
    if (absl::IsOutOfRange(status)) return Nonsense(absl::StrCat("with ", status.message()));
    const std::string how = absl::IsAborted(status) ? process_->End() : std::string(status.message());
    process_ = nullptr;
    return lost_ = absl::UnavailableError(absl::StrCat("the sandboxed trainer ", how));
  }

  const SandboxOptions options_;
  Channel channel_;
  int memory_ = -1;
  std::unique_ptr<ChildProcess> process_;
  Confinement confinement_;
  absl::Status lost_;
};

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

class SandboxedTrainer : public LocalTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<LocalTrainer>> Make(std::unique_ptr<Sandbox> sandbox, MakeRequest request) {
    TERSE_ASSIGN_OR_RETURN(const std::string answer,
                           sandbox->Call(FrameKind::kMake, EncodeMessage(std::move(request)), kMostLayoutBytes));
    Made made;
    if (!DecodeMessage(answer, &made)) return sandbox->Nonsense("with a model that cannot be read");
    for (const Layout::Entry& entry : made.layout) {
      if (entry.kind != TensorKind::kParameter && entry.kind != TensorKind::kBuffer) {
        return sandbox->Nonsense("with a tensor of no kind");
      }
    }
    absl::StatusOr<Layout> layout = Layout::Create(made.layout);
    if (!layout.ok()) return sandbox->Nonsense(absl::StrCat("with a model that is none: ", layout.status().message()));
    if (made.samples < 1) return sandbox->Nonsense(absl::StrCat("that it has ", made.samples, " samples"));
    // It has the vectors mapped itself, so its limit bounds what is taken here.
    if (SharedVectors::Bytes(layout->size()) >> 20 >= sandbox->options().memory_mb) {
      return absl::FailedPreconditionError(
          absl::StrCat("a model of ", layout->size(), " elements does not fit into the ", sandbox->options().memory_mb,
                       " MB of --sandbox-memory; give it more"));
    }
    std::unique_ptr<SandboxedTrainer> trainer(
        new SandboxedTrainer(std::move(sandbox), *std::move(layout), made.samples));
    TERSE_RETURN_IF_ERROR(trainer->vectors_.Create(trainer->sandbox_->memory(), trainer->layout_.size()));
    return trainer;
  }

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return samples_; }
  std::string device() const override { return "cpu"; }

  std::vector<float> StartWeights() const override {
    const absl::StatusOr<std::string> answer = sandbox_->Call(FrameKind::kStart, "", kMostResultBytes);
    StartAnswer start;
    if (!answer.ok() || !DecodeMessage(*answer, &start) || !start.has_weights) return {};
    return {vectors_.result().begin(), vectors_.result().end()};
  }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    TERSE_RETURN_IF_ERROR(CheckSizes(weights.size(), delta.size()));
    std::copy(weights.begin(), weights.end(), vectors_.weights().begin());
    return Work(FrameKind::kTrain, EncodeMessage(plan), keep_going, delta);
  }

  absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                       absl::Span<float> gradient) override {
    TERSE_RETURN_IF_ERROR(CheckSizes(plan.weights.size(), gradient.size()));
    const GradientRequest request = {!plan.snapshot.empty()};
    if (request.has_snapshot) TERSE_RETURN_IF_ERROR(CheckSizes(plan.snapshot.size(), gradient.size()));
    std::copy(plan.weights.begin(), plan.weights.end(), vectors_.weights().begin());
    std::copy(plan.snapshot.begin(), plan.snapshot.end(), vectors_.snapshot().begin());
    return Work(FrameKind::kGradient, EncodeMessage(request), keep_going, gradient);
  }

  // One that fails is seen at the next call, since the trainer is lost.
  void MaskMomentum(absl::Span<const uint32_t> positions) override {
    const absl::string_view bytes(reinterpret_cast<const char*>(positions.data()), positions.size() * 4);
    sandbox_->Call(FrameKind::kMask, bytes, 0).status().IgnoreError();
  }

  absl::StatusOr<std::string> SaveState() override {
    return sandbox_->Call(FrameKind::kSave, "", kMostStateBytes + kMostStateBytesPerElement * layout_.size());
  }
  absl::Status RestoreState(absl::string_view state) override {
    return sandbox_->Call(FrameKind::kRestore, state, 0).status();
  }

 private:
  SandboxedTrainer(std::unique_ptr<Sandbox> sandbox, Layout layout, int64_t samples)
      : sandbox_(std::move(sandbox)), layout_(std::move(layout)), samples_(samples) {}

  absl::Status CheckSizes(size_t weights, size_t result) const {
    if (weights == result && static_cast<int64_t>(result) == layout_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training wants weights and a result of ", layout_.size(),
                                                   " floats, got ", weights, " and ", result));
  }

  absl::StatusOr<TrainResult> Work(FrameKind kind, const std::string& request, const std::function<bool()>& keep_going,
                                   absl::Span<float> result) {
    // As other trainers, this one may be asked without a function to ask.
    const std::function<bool()> asks = keep_going ? keep_going : [] { return true; };
    TERSE_ASSIGN_OR_RETURN(const std::string answer, sandbox_->Call(kind, request, kMostResultBytes, asks));
    TrainResult work;
    if (!DecodeMessage(answer, &work) || !std::isfinite(work.mean_loss) || work.samples < 0) {
      return sandbox_->Nonsense("with a loss or a number of samples that cannot be");
    }
    std::copy(vectors_.result().begin(), vectors_.result().end(), result.begin());
    if (!AllFinite(result)) return sandbox_->Nonsense("with numbers that are not finite");
    return work;
  }

  const std::unique_ptr<Sandbox> sandbox_;
  const Layout layout_;
  const int64_t samples_;
  SharedVectors vectors_;
};

}  // namespace

absl::StatusOr<Confinement> TrySandbox(const SandboxOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  return sandbox->confinement();
}

TrainerFactory SandboxedTrainerFactory(SandboxOptions options) {
  return [options = std::move(options)](const RunConfig& config, const Shard& shard,
                                        absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
    return SandboxedTrainer::Make(std::move(sandbox), {config, shard, std::string(module)});
  };
}

}  // namespace terse
