#include "learning/gradient_tasks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace terse {
namespace {

// The number of examples at a time; it bounds memory, whatever the shard.
constexpr int64_t kSlice = 512;

TrainSpec SmoothPart(TrainSpec train) {
  train.optimizer.l1 = 0;
  return train;
}

absl::Status Diverged(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      "training diverged: ", what, " is not finite; lower server.learning_rate or look for damaged ", "training data"));
}

absl::Status Write(const at::Tensor& tensor, absl::Span<float> gradient) {
  const at::Tensor host = tensor.cpu();
  const float* values = host.data_ptr<float>();
  for (size_t i = 0; i < gradient.size(); ++i) {
    if (!std::isfinite(values[i])) return Diverged("a gradient");
    gradient[i] = values[i];
  }
  return absl::OkStatus();
}

// The loss at the weights; the gradient is the model's.
float LossAt(ScriptModel* model, const Loss& loss, const Batch& batch) {
  ScriptModel::State state = model->InitialState(batch.x.size(0));
  return model->LossAndGradient(batch, loss, &state);
}

void Begin(ScriptModel* model, absl::Span<const float> weights) {
  model->SetWeights(weights);
  model->SetTraining(false);
}

}  // namespace

GradientTasks::GradientTasks(const RunConfig& config, const Layout& layout, std::shared_ptr<const Dataset> dataset,
                             std::vector<uint32_t> indices, c10::Device device)
    : dataset_(std::move(dataset)),
      indices_(std::move(indices)),
      normalize_(config.data.normalize),
      device_(device),
      terms_(SmoothPart(config.train), layout) {}

absl::StatusOr<TrainResult> GradientTasks::Full(ScriptModel* model, const Loss& loss, absl::Span<const float> weights,
                                                const std::function<bool()>& keep_going,
                                                absl::Span<float> gradient) const {
  Begin(model, weights);
  const int64_t total = static_cast<int64_t>(indices_.size());
  at::Tensor sum = at::zeros_like(model->gradient());
  double loss_sum = 0;
  for (int64_t begin = 0; begin < total; begin += kSlice) {
    if (keep_going && !keep_going()) return absl::CancelledError("stopped between two slices of the examples");
    const int64_t count = std::min(kSlice, total - begin);
    const auto slice = absl::MakeConstSpan(indices_).subspan(begin, count);
    const Batch batch = {FeaturesOf(dataset_->train.features, slice, normalize_, device_),
                         TargetsOf(dataset_->train.targets, slice, device_)};
    const float mean = LossAt(model, loss, batch);
    if (!std::isfinite(mean)) return Diverged("the loss");
    loss_sum += static_cast<double>(mean) * static_cast<double>(count);
    const at::NoGradGuard no_grad;
    sum.add_(model->gradient(), static_cast<double>(count) / static_cast<double>(total));
  }
  const at::NoGradGuard no_grad;
  terms_.Apply({}, model->weights(), &sum);
  const absl::Status written = Write(sum, gradient);
  if (!written.ok()) return written;
  return TrainResult{static_cast<float>(loss_sum / static_cast<double>(total)), total};
}

absl::StatusOr<TrainResult> GradientTasks::Step(ScriptModel* model, const Loss& loss, const Batch& batch,
                                                const GradientPlan& plan, absl::Span<float> gradient) const {
  const auto with_terms = [&](absl::Span<const float> weights) {
    Begin(model, weights);
    const float value = LossAt(model, loss, batch);
    const at::NoGradGuard no_grad;
    terms_.Apply({}, model->weights(), &model->gradient());
    return value;
  };
  with_terms(plan.snapshot);
  const at::Tensor at_snapshot = model->gradient().clone();
  const float value = with_terms(plan.weights);
  if (!std::isfinite(value)) return Diverged("the loss");
  const absl::Status written = Write(model->gradient() - at_snapshot, gradient);
  if (!written.ok()) return written;
  return TrainResult{value, batch.x.size(0)};
}

}  // namespace terse
