#include "trainer/serve_trainer.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "trainer/trainer_source.h"

namespace terse {
namespace {

class TrainerService : public PeerService {
 public:
  TrainerService(const std::string& name, const TrainerMaker& make_trainer)
      : name_(name), make_trainer_(make_trainer) {}

  absl::StatusOr<Hello> Open(const RunOpening& opening) override {
    trainer_ = nullptr;  // before another takes memory
    TERSE_ASSIGN_OR_RETURN(trainer_, make_trainer_(opening));
    Hello hello;
    hello.protocol = kTrainerProtocol;
    hello.trainer = name_;
    hello.layout = ToWire(trainer_->layout());
    hello.dtype = "float32";
    hello.samples = trainer_->samples();
    hello.device = trainer_->device();
    hello.result = "delta";
    hello.has_start = !trainer_->StartWeights().empty();
    hello.has_state = true;
    hello.has_momentum = true;
    return hello;
  }

  absl::StatusOr<std::string> Answer(const Channel::Frame& request, const SharedVectors& vectors,
                                     const Progress& may_go_on) override {
    switch (request.kind) {
      case FrameKind::kStart:
        return AnswerStart(trainer_->StartWeights(), vectors);
      case FrameKind::kTrain:
        return Train(request.body, vectors, may_go_on);
      case FrameKind::kGradient:
        return Gradient(request.body, vectors, may_go_on);
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
        return UnknownRequest(request);
    }
  }

  void Hear(const Channel::Frame& word, const SharedVectors& vectors) override {
    if (const auto sealed = FromJson<SealedNotice>(word.body); word.kind == FrameKind::kSealed && sealed.ok()) {
      trainer_->OnSealed(sealed->round);
    }
    if (const auto finished = FromJson<FinishedNotice>(word.body); word.kind == FrameKind::kFinished && finished.ok()) {
      trainer_->OnFinished(finished->reason, vectors.weights());
    }
  }

 private:
  absl::StatusOr<std::string> Train(const std::string& body, const SharedVectors& vectors, const Progress& may_go_on) {
    TERSE_ASSIGN_OR_RETURN(const LocalPlan plan, FromJson<LocalPlan>(body));
    int64_t steps = 0;
    return Written(trainer_->Train(
        vectors.weights(), plan, [&] { return may_go_on(steps++); }, vectors.result()));
  }

  absl::StatusOr<std::string> Gradient(const std::string& body, const SharedVectors& vectors,
                                       const Progress& may_go_on) {
    TERSE_ASSIGN_OR_RETURN(const GradientRequest request, FromJson<GradientRequest>(body));
    GradientPlan plan = {vectors.weights(), {}};
    if (request.has_snapshot) plan.snapshot = vectors.snapshot();
    int64_t batches = 0;
    return Written(trainer_->Gradient(
        plan, [&] { return may_go_on(batches++); }, vectors.result()));
  }

  static absl::StatusOr<std::string> Written(const absl::StatusOr<TrainResult>& result) {
    TERSE_RETURN_IF_ERROR(result.status());
    WireResult wire = {result->mean_loss, result->samples};
    if (!result->metrics.empty()) wire.metrics = ToWire(result->metrics);
    return ToJson(wire);
  }

  const std::string& name_;
  const TrainerMaker& make_trainer_;
  std::unique_ptr<LocalTrainer> trainer_;
};

}  // namespace

void ServeTrainer(OwnedFile socket, const std::string& name, const TrainerMaker& make_trainer, OwnedFile memory) {
  TrainerService service(name, make_trainer);
  ServePeer(std::move(socket), std::move(memory), &service);
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
