#include "trainer/serve_trainer.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/status_details.h"
#include "trainer/channel.h"
#include "trainer/shared_vectors.h"
#include "trainer/trainer_source.h"

namespace terse {
namespace {

constexpr size_t kMostTextBytes = 4 << 10;

class TrainerServer {
 public:
  TrainerServer(OwnedFile socket, const std::string& name, const TrainerMaker& make_trainer)
      : name_(name), make_trainer_(make_trainer), channel_(std::move(socket), Channel::Files::kTaken) {}

  void Serve() {
    while (true) {
      const absl::StatusOr<Channel::Frame> request = channel_.Receive(kAnySize, nullptr);
      if (!request.ok()) return;
      if (request->kind == FrameKind::kSealed || request->kind == FrameKind::kFinished) {
        Hear(*request);
      } else if (!Answer(Do(*request)).ok()) {
        return;
      }
    }
  }

 private:
  absl::Status Answer(const absl::StatusOr<std::string>& answer) {
    if (answer.ok()) return channel_.Send(FrameKind::kDone, *answer, nullptr);
    const absl::Status& status = answer.status();
    const WireFailure failure = {absl::StatusCodeToString(status.code()),
                                 std::string(status.message().substr(0, kMostTextBytes)),
                                 DetailsOf(status).substr(0, kMostTextBytes)};
    return channel_.Send(FrameKind::kFailed, ToJson(failure), nullptr);
  }

  absl::StatusOr<std::string> Do(const Channel::Frame& request) {
    if (request.kind == FrameKind::kOpen) return Open(request.body);
    if (trainer_ == nullptr) return absl::FailedPreconditionError("no run was opened");
    switch (request.kind) {
      case FrameKind::kMemory:
        TERSE_RETURN_IF_ERROR(vectors_->Map(request.file.fd(), trainer_->layout().size()));
        return "{}";
      case FrameKind::kStart:
        return Start();
      case FrameKind::kTrain:
        return Train(request.body);
      case FrameKind::kMask:
        trainer_->MaskMomentum(
            {reinterpret_cast<const int64_t*>(request.body.data()), request.body.size() / sizeof(int64_t)});
        return "{}";
      case FrameKind::kSave:
        return trainer_->SaveState();
      case FrameKind::kRestore:
        TERSE_RETURN_IF_ERROR(trainer_->RestoreState(request.body));
        return "{}";
      default:
        return absl::UnimplementedError(
            absl::StrCat("this trainer does not know requests of kind ", static_cast<uint32_t>(request.kind)));
    }
  }

  absl::StatusOr<std::string> Open(const std::string& body) {
    TERSE_ASSIGN_OR_RETURN(const OpenRequest request, FromJson<OpenRequest>(body));
    TERSE_ASSIGN_OR_RETURN(trainer_, make_trainer_(request));
    vectors_ = std::make_unique<SharedVectors>();
    Hello hello;
    hello.protocol = kTrainerProtocol;
    hello.trainer = name_;
    for (const TensorSpec& tensor : trainer_->layout().tensors()) {
      const bool is_buffer = tensor.kind == TensorKind::kBuffer;
      hello.layout.push_back({tensor.name, tensor.shape, is_buffer ? "buffer" : "parameter"});
    }
    hello.dtype = "float32";
    hello.samples = trainer_->samples();
    hello.device = trainer_->device();
    hello.result = "delta";
    hello.has_start = !trainer_->StartWeights().empty();
    TERSE_ASSIGN_OR_RETURN(const std::string state, trainer_->SaveState());
    hello.has_state = !state.empty();
    hello.has_momentum = true;
    return ToJson(hello);
  }

  absl::StatusOr<std::string> Start() {
    const std::vector<float> weights = trainer_->StartWeights();
    const bool has_weights = weights.size() == vectors_->result().size();
    if (has_weights) std::copy(weights.begin(), weights.end(), vectors_->result().begin());
    return ToJson(WireStart{has_weights});
  }

  absl::StatusOr<std::string> Train(const std::string& body) {
    TERSE_ASSIGN_OR_RETURN(const LocalPlan plan, FromJson<LocalPlan>(body));
    int64_t steps = 0;
    const auto keep_going = [&] { return MayGoOn(steps++); };
    TERSE_ASSIGN_OR_RETURN(const TrainResult result,
                           trainer_->Train(vectors_->weights(), plan, keep_going, vectors_->result()));
    WireResult wire = {result.mean_loss, result.samples};
    if (!result.metrics.empty()) wire.metrics = ToWire(result.metrics);
    return ToJson(wire);
  }

  // A client that is gone is one that wants no more.
  bool MayGoOn(int64_t steps) {
    if (!channel_.Send(FrameKind::kProgress, ToJson(ProgressReport{steps}), nullptr).ok()) return false;
    const absl::StatusOr<Channel::Frame> frame = channel_.Receive(kAnySize, nullptr);
    if (!frame.ok() || frame->kind != FrameKind::kGoOn) return false;
    const absl::StatusOr<GoOn> answer = FromJson<GoOn>(frame->body);
    return answer.ok() && answer->go_on;
  }

  void Hear(const Channel::Frame& word) {
    if (trainer_ == nullptr) return;
    if (const auto sealed = FromJson<SealedNotice>(word.body); word.kind == FrameKind::kSealed && sealed.ok()) {
      trainer_->OnSealed(sealed->round);
    }
    if (const auto finished = FromJson<FinishedNotice>(word.body); word.kind == FrameKind::kFinished && finished.ok()) {
      trainer_->OnFinished(finished->reason, vectors_->weights());
    }
  }

  const std::string& name_;
  const TrainerMaker& make_trainer_;
  Channel channel_;
  std::unique_ptr<SharedVectors> vectors_;
  std::unique_ptr<LocalTrainer> trainer_;
};

}  // namespace

void ServeTrainer(OwnedFile socket, const std::string& name, const TrainerMaker& make_trainer) {
  TrainerServer(std::move(socket), name, make_trainer).Serve();
}

absl::StatusOr<OwnedFile> SocketOfClient() {
  const char* const number = std::getenv(kTrainerFdVariable);
  int fd = -1;
  if (number == nullptr || !absl::SimpleAtoi(number, &fd)) {
    return absl::FailedPreconditionError(absl::StrCat("no client started this program: ", kTrainerFdVariable,
                                                      " is not set; start it with terse-client --trainer COMMAND"));
  }
  return OwnedFile(fd);
}

}  // namespace terse
