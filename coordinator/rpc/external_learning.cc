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
  explicit ExternalLearning(NamedWeights model) : model_(std::move(model)) {}

  const Layout& layout() const override { return model_.layout; }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return model_.weights; }
  Evaluator* evaluator() override { return nullptr; }

 private:
  const NamedWeights model_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<RunLearning>> MakeExternalLearning(absl::string_view file) {
  TERSE_ASSIGN_OR_RETURN(NamedWeights model, ParseSafetensors(file));
  for (const TensorSpec& tensor : model.layout.tensors()) {
    const auto values = absl::MakeSpan(model.weights).subspan(tensor.offset, tensor.size);
    if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", tensor.name, "' of the model's file has values that are not finite; save a sound one"));
  }
  return std::make_shared<ExternalLearning>(std::move(model));
}

}  // namespace terse
