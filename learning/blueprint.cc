#include "learning/blueprint.h"

#include <torch/csrc/jit/serialization/import.h>

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"
#include "core/status_details.h"
#include "learning/data_fit.h"
#include "learning/models/model_table.h"
#include "learning/script_model.h"
#include "learning/torch_edge.h"

namespace terse {
namespace {

bool WithBuffers(const ModelSpec& spec) { return spec.buffers != "local"; }

class TableBlueprint : public Blueprint {
 public:
  TableBlueprint(ModelDefinition definition, Layout layout, bool with_buffers)
      : Blueprint(std::move(layout)), definition_(std::move(definition)), with_buffers_(with_buffers) {}

  std::vector<float> StartWeights(uint64_t seed) const override {
    return terse::StartWeights(definition_, seed, with_buffers_);
  }
  int64_t outputs() const override { return definition_.classes; }
  bool draws() const override { return definition_.draws; }
  std::unique_ptr<ScriptModel> Make(c10::Device device) const override {
    return std::make_unique<ScriptModel>(definition_, layout(), device);
  }

  absl::Status CheckFit(const Dataset& dataset) const override {
    TERSE_RETURN_IF_ERROR(CheckInput(definition_, dataset));
    return CheckOutputs(absl::StrCat("model '", definition_.name, "'"), definition_.classes, dataset);
  }

 private:
  const ModelDefinition definition_;
  const bool with_buffers_;
};

// On the processor, whatever device it was saved from.
torch::jit::Module FromBytes(absl::string_view bytes) {
  std::istringstream stream{std::string(bytes)};
  return torch::jit::load(stream, c10::kCPU);
}

class ModuleBlueprint : public Blueprint {
 public:
  ModuleBlueprint(std::string bytes, Layout layout, std::vector<float> start, bool carries_state)
      : Blueprint(std::move(layout)),
        bytes_(std::move(bytes)),
        start_(std::move(start)),
        carries_state_(carries_state) {}

  std::vector<float> StartWeights(uint64_t) const override { return start_; }
  int64_t outputs() const override { return 0; }
  bool draws() const override { return true; }  // nobody has looked
  absl::Status CheckFit(const Dataset& dataset) const override {
    if (!carries_state_ || dataset.task == Task::kText) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the model carries a state from batch to batch, which is for texts, and ", dataset.description,
                     " has examples that do not follow each other; export it with `forward(self, x)`, or use a text"));
  }
  std::unique_ptr<ScriptModel> Make(c10::Device device) const override {
    return std::make_unique<ScriptModel>(FromBytes(bytes_), layout(), device);
  }

 private:
  const std::string bytes_;
  const std::vector<float> start_;
  const bool carries_state_;
};

absl::StatusOr<torch::jit::Module> LoadModule(absl::string_view bytes) {
  absl::StatusOr<torch::jit::Module> module =
      CatchTorch("reading the model's file", [&]() -> absl::StatusOr<torch::jit::Module> { return FromBytes(bytes); });
  if (module.ok()) return module;
  return WithDetails(absl::InvalidArgumentError(absl::StrCat(
                         module.status().message(), "; save it with torch.jit.save(torch.jit.script(model), FILE)")),
                     DetailsOf(module.status()));
}

absl::Status CheckForward(const torch::jit::Module& module) {
  const auto forward = module.find_method("forward");
  const size_t arguments = forward.has_value() ? forward->function().getSchema().arguments().size() : 0;
  if (arguments == 2) return absl::OkStatus();
  if (arguments == 3 && module.find_method("initial_state").has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the model has neither `forward(self, x)` nor `forward(self, x, state: List[Tensor])` with "
      "`initial_state(self, batch: int) -> List[Tensor]`; export one of the two");
}

absl::StatusOr<std::shared_ptr<const Blueprint>> FromModule(const ModelSpec& spec, absl::string_view bytes) {
  TERSE_ASSIGN_OR_RETURN(const torch::jit::Module module, LoadModule(bytes));
  return CatchTorch("looking at the model", [&]() -> absl::StatusOr<std::shared_ptr<const Blueprint>> {
    TERSE_RETURN_IF_ERROR(CheckForward(module));
    TERSE_ASSIGN_OR_RETURN(const std::vector<ModelTensor> tensors, ModuleTensors(module));
    ModelDefinition definition;
    definition.tensors = tensors;
    TERSE_ASSIGN_OR_RETURN(Layout layout, LayoutOf(definition, WithBuffers(spec)));
    ScriptModel model(module, layout, c10::kCPU);
    const float* values = model.weights().data_ptr<float>();
    std::vector<float> start(values, values + layout.size());
    return std::make_shared<const ModuleBlueprint>(std::string(bytes), std::move(layout), std::move(start),
                                                   model.carries_state());
  });
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Blueprint>> MakeBlueprint(const ModelSpec& spec, absl::string_view module) {
  if (spec.name == kTorchScriptModel) return FromModule(spec, module);
  TERSE_ASSIGN_OR_RETURN(ModelDefinition definition, FindModel(spec));
  TERSE_ASSIGN_OR_RETURN(Layout layout, LayoutOf(definition, WithBuffers(spec)));
  return std::make_shared<const TableBlueprint>(std::move(definition), std::move(layout), WithBuffers(spec));
}

}  // namespace terse
