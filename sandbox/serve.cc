// The trainer's side: confine, make, serve.
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "core/status.h"
#include "sandbox/child_process.h"
#include "sandbox/confinement.h"
#include "sandbox/messages.h"
#include "sandbox/sandbox.h"
#include "sandbox/service.h"
#include "trainer/channel.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

class Server {
 public:
  explicit Server(const TrainerFactory& make_trainer)
      : make_trainer_(make_trainer), channel_(OwnedFile(kSandboxSocket)) {}

  // Until the client is gone.
  void Serve() {
    ServeFrames(&channel_, [this](const Channel::Frame& request) { return Do(request); });
  }

 private:
  absl::StatusOr<std::string> Do(const Channel::Frame& request) {
    if (request.kind == FrameKind::kOpen) return Make(request.body);
    if (trainer_ == nullptr) return absl::InternalError("the sandbox has no trainer");
    switch (request.kind) {
      case FrameKind::kStart:
        return Start();
      case FrameKind::kTrain:
        return Train(request.body);
      case FrameKind::kGradient:
        return Gradient(request.body);
      case FrameKind::kMask:
        trainer_->MaskMomentum(
            {reinterpret_cast<const int64_t*>(request.body.data()), request.body.size() / sizeof(int64_t)});
        return std::string();
      case FrameKind::kSave:
        return trainer_->SaveState();
      case FrameKind::kRestore:
        TERSE_RETURN_IF_ERROR(trainer_->RestoreState(request.body));
        return std::string();
      default:
        return UnknownRequest();
    }
  }

  absl::StatusOr<std::string> Make(const std::string& body) {
    LearningRequest request;
    if (!DecodeMessage(body, &request)) return UnknownRequest();
    TERSE_ASSIGN_OR_RETURN(trainer_, make_trainer_(request.config, request.shard, request.module));
    Made made;
    made.samples = trainer_->samples();
    for (const TensorSpec& tensor : trainer_->layout().tensors()) {
      made.layout.push_back({tensor.name, tensor.shape, tensor.kind});
    }
    return EncodeMessage(std::move(made));
  }

  absl::StatusOr<std::string> Start() {
    TERSE_RETURN_IF_ERROR(MapVectors());
    const std::vector<float> weights = trainer_->StartWeights();
    const bool has_weights = weights.size() == vectors_.result().size();
    if (has_weights) std::copy(weights.begin(), weights.end(), vectors_.result().begin());
    return EncodeMessage(StartAnswer{has_weights});
  }

  absl::StatusOr<std::string> Train(const std::string& body) {
    LocalPlan plan;
    if (!DecodeMessage(body, &plan)) return UnknownRequest();
    TERSE_RETURN_IF_ERROR(MapVectors());
    TERSE_ASSIGN_OR_RETURN(const TrainResult result,
                           trainer_->Train(
                               vectors_.weights(), plan, [this] { return MayGoOn(); }, vectors_.result()));
    return EncodeMessage(result);
  }

  absl::StatusOr<std::string> Gradient(const std::string& body) {
    GradientRequest request;
    if (!DecodeMessage(body, &request)) return UnknownRequest();
    TERSE_RETURN_IF_ERROR(MapVectors());
    GradientPlan plan = {vectors_.weights(), {}};
    if (request.has_snapshot) plan.snapshot = vectors_.snapshot();
    TERSE_ASSIGN_OR_RETURN(const TrainResult result, trainer_->Gradient(
                                                         plan, [this] { return MayGoOn(); }, vectors_.result()));
    return EncodeMessage(result);
  }

  // The file has its size once the client knows the layout, which is before the first call that needs it.
  absl::Status MapVectors() {
    return vectors_.mapped() ? absl::OkStatus() : vectors_.Map(kSandboxMemory, trainer_->layout().size());
  }

  // Between two steps. A client that is gone is one that wants no more.
  bool MayGoOn() {
    if (!channel_.Send(FrameKind::kProgress, "", nullptr).ok()) return false;
    const absl::StatusOr<Channel::Frame> frame = channel_.Receive(kAnySize, nullptr);
    StepAnswer answer;
    return frame.ok() && frame->kind == FrameKind::kGoOn && DecodeMessage(frame->body, &answer) && answer.go_on;
  }

  const TrainerFactory& make_trainer_;
  Channel channel_;
  SharedVectors vectors_;
  std::unique_ptr<LocalTrainer> trainer_;
};

}  // namespace

absl::Status EnterSandbox(const SandboxChild& child) {
  const absl::StatusOr<Confinement> confinement = Confine(child.readable, child.memory_mb, child.own_network);
  Channel channel{OwnedFile(dup(kSandboxSocket))};
  if (confinement.ok()) return AnswerFrame(EncodeMessage(*confinement), &channel);
  AnswerFrame(confinement.status(), &channel).IgnoreError();
  return confinement.status();
}

int ServeSandbox(const TrainerFactory& make_trainer) {
  Server server(make_trainer);
  server.Serve();
  return 0;
}

}  // namespace terse
