#include "learning/evaluator.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/models/model_table.h"
#include "learning/script_model.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

constexpr int64_t kBatch = 500;

class TorchEvaluator : public Evaluator {
 public:
  TorchEvaluator(const ModelDefinition& definition, Layout layout, std::shared_ptr<const Dataset> dataset,
                 c10::Device device)
      : layout_(std::move(layout)), dataset_(std::move(dataset)), model_(definition, layout_, device) {}

  absl::StatusOr<Evaluation> Evaluate(absl::Span<const float> weights) override {
    if (static_cast<int64_t>(weights.size()) != layout_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has ", layout_.size(), " weights, got ", weights.size()));
    }
    return CatchTorch("evaluating", [&]() -> absl::StatusOr<Evaluation> { return Run(weights); });
  }

 private:
  Evaluation Run(absl::Span<const float> weights) {
    AdoptThreadCount();
    const at::NoGradGuard no_grad;
    model_.SetWeights(weights);
    const int64_t count = dataset_->test.count();
    std::vector<uint32_t> indices(count);
    std::iota(indices.begin(), indices.end(), 0u);
    int64_t correct = 0;
    double loss = 0;
    for (int64_t first = 0; first < count; first += kBatch) {
      const auto batch = absl::MakeConstSpan(indices).subspan(first, std::min(kBatch, count - first));
      const at::Tensor labels = model_.Labels(dataset_->test, batch);
      const at::Tensor logits = model_.Forward(model_.Images(dataset_->test, batch));
      correct += logits.argmax(1).eq(labels).sum().item<int64_t>();
      loss += at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum).item<double>();
    }
    return {static_cast<double>(correct) / count, loss / count};
  }

  const Layout layout_;
  const std::shared_ptr<const Dataset> dataset_;
  ScriptModel model_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> MakeEvaluator(absl::string_view model,
                                                         std::shared_ptr<const Dataset> dataset,
                                                         absl::string_view device) {
  TERSE_ASSIGN_OR_RETURN(const ModelDefinition definition, FindModel(model));
  TERSE_ASSIGN_OR_RETURN(Layout layout, Layout::Create(definition.parameters));
  const std::vector<int64_t> shape = {1, dataset->test.rows, dataset->test.columns};
  if (definition.input_shape != shape || definition.classes < dataset->classes || dataset->test.count() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model, "' cannot be evaluated on the ",
                                                   dataset->test.count(), " test images of ", dataset->description));
  }
  return CatchTorch("preparing the model", [&]() -> absl::StatusOr<std::unique_ptr<Evaluator>> {
    TERSE_ASSIGN_OR_RETURN(const c10::Device where, ChooseDevice(device));
    return std::make_unique<TorchEvaluator>(definition, std::move(layout), std::move(dataset), where);
  });
}

}  // namespace terse
