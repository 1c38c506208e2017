#include "coordinator/rpc/external_learning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "storage/model_files.h"

namespace terse {
namespace {

class ExternalLearning : public RunLearning {
 public:
  ExternalLearning(NamedWeights model, std::unique_ptr<Evaluator> evaluator)
      : model_(std::move(model)), evaluator_(std::move(evaluator)) {}

  const Layout& layout() const override { return model_.layout; }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return model_.weights; }
  Evaluator* evaluator() override { return evaluator_.get(); }

 private:
  const NamedWeights model_;
  const std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<RunLearning>> MakeExternalLearning(const RunConfig& config, absl::string_view file,
                                                                  const EvaluatorFactory& make_evaluator) {
  if (!make_evaluator && EndsByEvaluation(config.limits)) {
    return absl::InvalidArgumentError(
        "limits.accuracy, limits.loss and limits.patience can never be reached: nothing at this coordinator evaluates "
        "a "
        "model of model.name = 'external'; start it with --evaluator, or leave them out");
  }
  TERSE_ASSIGN_OR_RETURN(NamedWeights model, ParseSafetensors(file));
  for (const TensorSpec& tensor : model.layout.tensors()) {
    const auto values = absl::MakeSpan(model.weights).subspan(tensor.offset, tensor.size);
    if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", tensor.name, "' of the model's file has values that are not finite; save a sound one"));
  }
  std::unique_ptr<Evaluator> evaluator = make_evaluator ? make_evaluator(config, model.layout) : nullptr;
  return std::make_shared<ExternalLearning>(std::move(model), std::move(evaluator));
}

}  // namespace terse
