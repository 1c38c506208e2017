#include "learning/script_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status.h"

namespace terse {
namespace {

// A module of the definition's tensors, one submodule for each first part of a name, and its methods.
torch::jit::Module Compile(const ModelDefinition& definition) {
  torch::jit::Module module(definition.name);
  std::map<std::string, torch::jit::Module> submodules;
  for (const ModelTensor& tensor : definition.tensors) {
    const std::pair<std::string, std::string> name = absl::StrSplit(tensor.name, absl::MaxSplits('.', 1));
    auto found = submodules.find(name.first);
    if (found == submodules.end()) {
      found = submodules.emplace(name.first, torch::jit::Module(name.first)).first;
      module.register_module(name.first, found->second);
    }
    const at::Tensor values = at::zeros(tensor.shape, at::kFloat);
    if (tensor.kind == TensorKind::kBuffer) {
      found->second.register_buffer(name.second, values);
    } else {
      found->second.register_parameter(name.second, values.detach().requires_grad_(true), /*is_buffer=*/false);
    }
  }
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(definition.source);
  return module;
}

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  TensorKind kind;
};

// Parameters, then buffers; each tensor once.
std::vector<NamedTensor> TensorsOf(const torch::jit::Module& module) {
  std::vector<NamedTensor> found;
  std::set<const void*> seen;
  for (const auto& parameter : module.named_parameters()) {
    if (!parameter.value.requires_grad() || !seen.insert(parameter.value.unsafeGetTensorImpl()).second) continue;
    found.push_back({parameter.name, parameter.value, TensorKind::kParameter});
  }
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value.scalar_type() != at::kFloat || buffer.value.numel() == 0) continue;
    if (!seen.insert(buffer.value.unsafeGetTensorImpl()).second) continue;
    found.push_back({buffer.name, buffer.value, TensorKind::kBuffer});
  }
  return found;
}

// The tensor keeps its values and its place in the module, and lies in `place` from now on.
void MoveInto(const at::Tensor& place, at::Tensor* tensor) {
  place.copy_(*tensor);
  tensor->set_data(place);
}

c10::IValue AsList(const ScriptModel::State& state) { return c10::IValue(c10::List<at::Tensor>(state)); }

}  // namespace

ScriptModel::ScriptModel(const ModelDefinition& definition, const Layout& layout, c10::Device device)
    : ScriptModel(Compile(definition), layout, device) {}

ScriptModel::ScriptModel(torch::jit::Module module, const Layout& layout, c10::Device device)
    : device_(device), module_(std::move(module)) {
  module_.to(device);
  std::map<std::string, at::Tensor> tensors;
  for (NamedTensor& one : TensorsOf(module_)) tensors.emplace(std::move(one.name), std::move(one.tensor));
  const at::NoGradGuard no_grad;
  PlaceInLayout(layout, &tensors);
  PlaceLocally(tensors);
  carries_state_ = module_.get_method("forward").function().getSchema().arguments().size() == 3;
}

// Takes what it places out of `tensors`.
void ScriptModel::PlaceInLayout(const Layout& layout, std::map<std::string, at::Tensor>* tensors) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
  weights_ = at::zeros({layout.size()}, options);
  gradient_ = at::zeros({layout.parameters()}, options);
  for (const TensorSpec& spec : layout.tensors()) {
    at::Tensor tensor = tensors->at(spec.name);
    tensors->erase(spec.name);
    MoveInto(weights_.narrow(0, spec.offset, spec.size).view(spec.shape), &tensor);
    if (spec.kind == TensorKind::kBuffer) continue;
    tensor.mutable_grad() = gradient_.narrow(0, spec.offset, spec.size).view(spec.shape);
    parameters_.push_back(tensor);
  }
}

void ScriptModel::PlaceLocally(const std::map<std::string, at::Tensor>& buffers) {
  int64_t size = 0;
  for (const auto& [name, buffer] : buffers) size += buffer.numel();
  local_buffers_ = at::zeros({size}, weights_.options());
  int64_t offset = 0;
  for (const auto& [name, buffer] : buffers) {
    at::Tensor tensor = buffer;
    MoveInto(local_buffers_.narrow(0, offset, tensor.numel()).view(tensor.sizes()), &tensor);
    offset += tensor.numel();
  }
}

void ScriptModel::SetWeights(absl::Span<const float> weights) {
  const at::NoGradGuard no_grad;
  weights_.copy_(at::from_blob(const_cast<float*>(weights.data()), {static_cast<int64_t>(weights.size())}));
}

void ScriptModel::SetTraining(bool training) { module_.train(training); }

ScriptModel::State ScriptModel::InitialState(int64_t batch) {
  if (!carries_state_) return {};
  const at::NoGradGuard no_grad;
  return module_.get_method("initial_state")({batch}).toTensorVector();
}

at::Tensor ScriptModel::Forward(const at::Tensor& x, State* state) {
  // The optimising executor specialises a graph after its first runs, so a restored process would round differently
  // from one that never stopped.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  if (!carries_state_) return module_.forward({x}).toTensor();
  const c10::IValue result = module_.forward({x, AsList(*state)});
  *state = result.toTupleRef().elements()[1].toTensorVector();
  return result.toTupleRef().elements()[0].toTensor();
}

float ScriptModel::LossAndGradient(const Batch& batch, const Loss& loss, State* state) {
  const at::Tensor output = Forward(batch.x, state);
  const at::Tensor value = loss.train(output, FitTargets(loss, output, batch.target));
  gradient_.zero_();
  value.backward();
  for (at::Tensor& carried : *state) carried = carried.detach();
  return value.item<float>();
}

absl::StatusOr<std::vector<ModelTensor>> ModuleTensors(const torch::jit::Module& module) {
  std::vector<ModelTensor> tensors;
  for (const NamedTensor& one : TensorsOf(module)) {
    if (one.tensor.scalar_type() != at::kFloat) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", one.name, "' of the model has the type ",
                                                     std::string(one.tensor.dtype().name()), "; train in float32"));
    }
    tensors.push_back({one.name, one.tensor.sizes().vec(), {}, one.kind});
  }
  return tensors;
}

}  // namespace terse
