#include "trainer/external_trainer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

// Bounds a saved state: optimizers have up to two moments for each element, and there may be more beside them.
constexpr uint64_t kMostStateBytes = 64 << 20;
constexpr uint64_t kMostStateBytesPerElement = 64;
constexpr MetricKind kKindsOfTrainers[] = {MetricKind::kTraining, MetricKind::kEvaluation};

class ExternalTrainer : public LocalTrainer {
 public:
  explicit ExternalTrainer(std::unique_ptr<TrainerPeer> peer) : peer_(std::move(peer)) {}

  const Layout& layout() const override { return peer_->layout(); }
  int64_t samples() const override { return peer_->hello().samples; }
  std::string device() const override { return peer_->hello().device; }

  std::vector<float> StartWeights() const override { return peer_->StartWeights().value_or(std::vector<float>()); }

  absl::StatusOr<TrainResult> Train(absl::Span<const float> weights, const LocalPlan& plan,
                                    const std::function<bool()>& keep_going, absl::Span<float> delta) override {
    TERSE_RETURN_IF_ERROR(CheckSizes(weights.size(), delta.size()));
    peer_->GiveWeights(weights);
    return Work(FrameKind::kTrain, ToJson(plan), keep_going, weights, delta);
  }

  absl::StatusOr<TrainResult> Gradient(const GradientPlan& plan, const std::function<bool()>& keep_going,
                                       absl::Span<float> gradient) override {
    if (!peer_->role().is_confined()) return LocalTrainer::Gradient(plan, keep_going, gradient);
    TERSE_RETURN_IF_ERROR(CheckSizes(plan.weights.size(), gradient.size()));
    const GradientRequest request = {!plan.snapshot.empty()};
    if (request.has_snapshot) TERSE_RETURN_IF_ERROR(CheckSizes(plan.snapshot.size(), gradient.size()));
    peer_->GiveWeights(plan.weights);
    peer_->GiveSnapshot(plan.snapshot);
    return Work(FrameKind::kGradient, ToJson(request), keep_going, {}, gradient);
  }

  // One that fails is seen at the next call, since the trainer is lost.
  void MaskMomentum(absl::Span<const int64_t> positions) override {
    if (!peer_->hello().has_momentum) return;
    const absl::string_view bytes(reinterpret_cast<const char*>(positions.data()), positions.size() * sizeof(int64_t));
    Call(FrameKind::kMask, bytes).status().IgnoreError();
  }

  absl::StatusOr<std::string> SaveState() override {
    if (!peer_->hello().has_state) return std::string();
    return peer_->dialogue().Call(FrameKind::kSave, "", kMostStateBytes + kMostStateBytesPerElement * layout().size());
  }
  absl::Status RestoreState(absl::string_view state) override {
    if (!peer_->hello().has_state) return absl::OkStatus();
    return Call(FrameKind::kRestore, state).status();
  }

  void OnSealed(int64_t round) override {
    peer_->dialogue().Tell(FrameKind::kSealed, ToJson(SealedNotice{round})).IgnoreError();
  }
  void OnFinished(absl::string_view reason, absl::Span<const float> weights) override {
    peer_->GiveWeights(weights);
    peer_->dialogue().Tell(FrameKind::kFinished, ToJson(FinishedNotice{std::string(reason)})).IgnoreError();
  }

 private:
  absl::StatusOr<std::string> Call(FrameKind kind, absl::string_view body) const {
    return peer_->dialogue().Call(kind, body, TrainerPeer::kMostAnswerBytes);
  }

  absl::Status CheckSizes(size_t weights, size_t result) const {
    if (weights == result && static_cast<int64_t>(result) == layout().size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("training wants weights and a result of ", layout().size(),
                                                   " floats, got ", weights, " and ", result));
  }

  // Asks for a training from `weights`, or for a gradient, and writes what the trainer left.
  absl::StatusOr<TrainResult> Work(FrameKind kind, const std::string& request, const std::function<bool()>& keep_going,
                                   absl::Span<const float> weights, absl::Span<float> delta) {
    // As other trainers, this one may be asked without a function to ask.
    const std::function<bool()> asks = keep_going ? keep_going : [] { return true; };
    TERSE_ASSIGN_OR_RETURN(const std::string answer,
                           peer_->dialogue().Call(kind, request, TrainerPeer::kMostAnswerBytes, asks));
    const absl::StatusOr<WireResult> wire = FromJson<WireResult>(answer);
    if (!wire.ok()) return peer_->Unreadable("training", wire.status());
    if (wire->samples < 0) return peer_->dialogue().Nonsense("with a negative number of samples");
    TrainResult result = {static_cast<float>(wire->loss), wire->samples};
    if (!std::isfinite(result.mean_loss)) return NotFinite("a loss that is not finite");
    if (wire->metrics.has_value()) {
      TERSE_ASSIGN_OR_RETURN(result.metrics, peer_->ReadMetrics(*wire->metrics, kKindsOfTrainers));
    }
    if (!peer_->TakeResult(weights, delta)) return NotFinite(WhereNotFinite(delta));
    return result;
  }

  // A confined trainer has looked for it itself, so that advice about training would be wrong there.
  absl::Status NotFinite(absl::string_view finding) {
    const char* const advice = "; lower its learning rate, or look for what in the data makes it diverge";
    return peer_->Mistaken(absl::StrCat("left ", finding, peer_->role().is_confined() ? "" : advice));
  }

  std::string WhereNotFinite(absl::Span<const float> delta) const {
    for (const TensorSpec& tensor : layout().tensors()) {
      const absl::Span<const float> values = delta.subspan(tensor.offset, tensor.size);
      const int64_t bad =
          std::count_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
      if (bad == 0) continue;
      return absl::StrCat(bad, " of the ", tensor.size, " values of tensor '", Printable(tensor.name, false),
                          "' that are not finite");
    }
    return "values that are not finite";
  }

  const std::unique_ptr<TrainerPeer> peer_;
};

}  // namespace

std::unique_ptr<LocalTrainer> MakeExternalTrainer(std::unique_ptr<TrainerPeer> peer) {
  return std::make_unique<ExternalTrainer>(std::move(peer));
}

TrainerFactory ExternalTrainerFactory(ExternalTrainerOptions options) {
  return [options = std::move(options)](const RunConfig& config, const Shard& shard,
                                        absl::string_view) -> absl::StatusOr<std::unique_ptr<LocalTrainer>> {
    TERSE_ASSIGN_OR_RETURN(TrainerConnection connection, options.source());
    TERSE_ASSIGN_OR_RETURN(
        std::unique_ptr<TrainerPeer> peer,
        TrainerPeer::Open(std::move(connection), kTrainerRole, {options.seconds, options.stop, options.log},
                          RequestFor(config, shard, kTrainerRole)));
    return MakeExternalTrainer(std::move(peer));
  };
}

}  // namespace terse
