// The client's side: a trainer whose work is done in another process, which is not believed.

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "sandbox/messages.h"
#include "sandbox/sandbox.h"
#include "sandbox/sandbox_process.h"
#include "trainer/shared_vectors.h"

namespace terse {
namespace {

constexpr uint64_t kMostResultBytes = SandboxProcess::kMostResultBytes;
// Bounds a saved state: optimizers have up to two moments for each element, and there may be a hidden state beside
// them.
constexpr uint64_t kMostStateBytes = 64 << 20;
constexpr uint64_t kMostStateBytesPerElement = 64;

bool AllFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

class SandboxedTrainer : public LocalTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<LocalTrainer>> Make(std::unique_ptr<SandboxProcess> sandbox,
                                                            LearningRequest request) {
    TERSE_ASSIGN_OR_RETURN(const std::string answer, sandbox->Call(FrameKind::kOpen, EncodeMessage(std::move(request)),
                                                                   SandboxProcess::kMostLayoutBytes));
    Made made;
    if (!DecodeMessage(answer, &made)) return sandbox->Nonsense("with a model that cannot be read");
    TERSE_ASSIGN_OR_RETURN(Layout layout, sandbox->TakeLayout(made.layout));
    if (made.samples < 1) return sandbox->Nonsense(absl::StrCat("that it has ", made.samples, " samples"));
    std::unique_ptr<SandboxedTrainer> trainer(
        new SandboxedTrainer(std::move(sandbox), std::move(layout), made.samples));
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
  void MaskMomentum(absl::Span<const int64_t> positions) override {
    const absl::string_view bytes(reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(int64_t));
    sandbox_->Call(FrameKind::kMask, bytes, 0).status().IgnoreError();
  }

  absl::StatusOr<std::string> SaveState() override {
    return sandbox_->Call(FrameKind::kSave, "", kMostStateBytes + kMostStateBytesPerElement * layout_.size());
  }
  absl::Status RestoreState(absl::string_view state) override {
    return sandbox_->Call(FrameKind::kRestore, state, 0).status();
  }

 private:
  SandboxedTrainer(std::unique_ptr<SandboxProcess> sandbox, Layout layout, int64_t samples)
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

  const std::unique_ptr<SandboxProcess> sandbox_;
  const Layout layout_;
  const int64_t samples_;
  SharedVectors vectors_;
};

}  // namespace

absl::StatusOr<Confinement> TrySandbox(const SandboxOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<SandboxProcess> sandbox, SandboxProcess::Start(options));
  return sandbox->confinement();
}

TrainerFactory SandboxedTrainerFactory(SandboxOptions options) {
  return [options = std::move(options)](const RunConfig& config, const Shard& shard,
                                        absl::string_view module) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<SandboxProcess> sandbox, SandboxProcess::Start(options));
    return SandboxedTrainer::Make(std::move(sandbox), {config, shard, std::string(module)});
  };
}

}  // namespace terse
