#include "learning/export.h"

#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "learning/script_model.h"
#include "learning/torch_edge.h"

namespace terse {

absl::StatusOr<std::string> ExportTorchScript(const Blueprint& blueprint, absl::Span<const float> weights) {
  if (const int64_t size = blueprint.layout().size(); static_cast<int64_t>(weights.size()) != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has ", size, " weights, got ", weights.size(), "; export the weights of that model"));
  }
  return CatchTorch("exporting the model", [&]() -> absl::StatusOr<std::string> {
    const std::unique_ptr<ScriptModel> model = blueprint.Make(c10::kCPU);
    model->SetWeights(weights);
    model->SetTraining(false);
    std::ostringstream out;
    std::move(*model).Detached().save(out);
    return out.str();
  });
}

}  // namespace terse
