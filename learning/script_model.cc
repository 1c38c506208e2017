#include "learning/script_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <algorithm>
#include <map>
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
    if (tensor.kind == TensorKind::kBuffer) {
      found->second.register_buffer(name.second, at::full(tensor.shape, tensor.start.value, at::kFloat));
    } else {
      // One number that stands for all: the memory comes with the layout.
      const at::Tensor zeros = at::zeros({1}).expand(tensor.shape).requires_grad_(true);
      found->second.register_parameter(name.second, zeros, /*is_buffer=*/false);
    }
  }
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(definition.source);
  return module;
}

// One tensor of a module, and every path that leads to it (tied weights have several).
struct NamedTensor {
  std::vector<std::string> paths;
  at::Tensor tensor;
  TensorKind kind;
};

// Two tensors that a file shares are two objects after loading, over the same memory.
bool AreOne(const at::Tensor& a, const at::Tensor& b) {
  return a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides() && a.numel() > 0;
}

// All parameters that are trained, then all buffers.
std::vector<NamedTensor> TensorsOf(const torch::jit::Module& module) {
  std::vector<NamedTensor> found;
  const auto add = [&found](const std::string& path, const at::Tensor& tensor, TensorKind kind) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const NamedTensor& one) {
      return one.kind == kind && AreOne(one.tensor, tensor);
    });
    same != found.end() ? same->paths.push_back(path) : found.push_back({{path}, tensor, kind});
  };
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value.requires_grad()) add(parameter.name, parameter.value, TensorKind::kParameter);
  }
  for (const auto& buffer : module.named_buffers()) add(buffer.name, buffer.value, TensorKind::kBuffer);
  return found;
}

// The submodule that has the last part of `path` as its attribute, and that part.
std::pair<torch::jit::Module, std::string> OwnerOf(torch::jit::Module module, absl::string_view path) {
  std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) module = module.attr(parts[i]).toModule();
  return {std::move(module), std::move(parts.back())};
}

c10::IValue AsList(const ScriptModel::State& state) { return c10::IValue(c10::List<at::Tensor>(state)); }

}  // namespace

ScriptModel::ScriptModel(const ModelDefinition& definition, const Layout& layout, c10::Device device)
    : ScriptModel(Compile(definition), layout, device) {}

ScriptModel::ScriptModel(torch::jit::Module module, const Layout& layout, c10::Device device)
    : device_(device), module_(module) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device_);
  weights_ = at::zeros({layout.size()}, options);
  std::map<std::string, const TensorSpec*> specs;
  for (const TensorSpec& spec : layout.tensors()) specs.emplace(spec.name, &spec);
  const std::vector<NamedTensor> tensors = TensorsOf(module_);  // before the move, which would part tied ones
  module_.to(device);
  for (const NamedTensor& one : tensors) {
    const auto spec = specs.find(one.paths[0]);
    if (spec != specs.end()) {
      PlaceInLayout(*spec->second, one.tensor);
      specs.erase(spec);
    } else {
      local_buffers_.push_back(one.tensor);
    }
    for (const std::string& path : one.paths) {
      auto [owner, attribute] = OwnerOf(module_, path);
      owner.setattr(attribute, one.tensor);
      if (one.kind == TensorKind::kBuffer) buffers_.push_back({one.tensor, owner, attribute});
    }
  }
  TORCH_CHECK(specs.empty(), "the module has no tensor '", specs.begin()->first, "'");
  carries_state_ = module_.get_method("forward").function().getSchema().arguments().size() == 3;
}

void ScriptModel::PlaceInLayout(const TensorSpec& spec, at::Tensor tensor) {
  const at::Tensor place = weights_.narrow(0, spec.offset, spec.size).view(spec.shape);
  place.copy_(tensor);
  tensor.set_data(place);
  if (spec.kind == TensorKind::kBuffer) return;
  parameters_.push_back({tensor, spec.offset});
}

at::Tensor& ScriptModel::gradient() {
  if (gradient_.defined()) return gradient_;
  int64_t size = 0;
  for (const Parameter& parameter : parameters_) size += parameter.tensor.numel();
  gradient_ = at::zeros({size}, weights_.options());
  for (Parameter& parameter : parameters_) {
    parameter.tensor.mutable_grad() =
        gradient_.narrow(0, parameter.offset, parameter.tensor.numel()).view(parameter.tensor.sizes());
  }
  return gradient_;
}

void ScriptModel::Reattach(bool take_values) {
  const at::NoGradGuard no_grad;
  for (Buffer& buffer : buffers_) {
    const at::Tensor now = buffer.owner.attr(buffer.attribute).toTensor();
    if (now.unsafeGetTensorImpl() == buffer.tensor.unsafeGetTensorImpl()) continue;
    if (take_values) buffer.tensor.copy_(now);
    buffer.owner.setattr(buffer.attribute, buffer.tensor);
  }
}

void ScriptModel::SetWeights(absl::Span<const float> weights) {
  const at::NoGradGuard no_grad;
  Reattach(/*take_values=*/false);
  weights_.copy_(at::from_blob(const_cast<float*>(weights.data()), {static_cast<int64_t>(weights.size())}));
}

torch::jit::Module ScriptModel::Detached() && {
  const at::NoGradGuard no_grad;
  const auto part = [](at::Tensor tensor) { tensor.set_data(tensor.clone()); };
  for (const auto& parameter : module_.named_parameters()) part(parameter.value);
  for (const auto& buffer : module_.named_buffers()) part(buffer.value);
  return module_;
}

void ScriptModel::SetTraining(bool training) { module_.train(training); }

ScriptModel::State ScriptModel::InitialState(int64_t batch) {
  if (!carries_state_) return {};
  const at::NoGradGuard no_grad;
  return module_.get_method("initial_state")({batch}).toTensorVector();
}

at::Tensor ScriptModel::Forward(const at::Tensor& x, State* state) {
  at::Tensor output = Run(x, state);
  Reattach(/*take_values=*/true);
  return output;
}

at::Tensor ScriptModel::Run(const at::Tensor& x, State* state) {
  // The optimising executor specialises a graph after its first runs, so a restored process would round differently
  // from one that never stopped.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  if (!carries_state_) return module_.forward({x}).toTensor();
  const c10::IValue result = module_.forward({x, AsList(*state)});
  *state = result.toTupleRef().elements()[1].toTensorVector();
  return result.toTupleRef().elements()[0].toTensor();
}

float ScriptModel::LossAndGradient(const Batch& batch, const Loss& loss, State* state) {
  const at::Tensor output = Run(batch.x, state);
  const at::Tensor value = loss.train(output, FitTargets(loss, output, batch.target));
  TORCH_CHECK(value.requires_grad(), "the output of forward is detached from the parameters, so that nothing can be ",
              "trained: take detach(), item() and no_grad() out of it");
  gradient().zero_();
  value.backward();
  Reattach(/*take_values=*/true);  // the way back may need the values that forward saw
  for (at::Tensor& carried : *state) carried = carried.detach();
  return value.item<float>();
}

std::vector<at::Tensor> CloneAll(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> clones;
  for (const at::Tensor& tensor : tensors) clones.push_back(tensor.clone());
  return clones;
}

absl::StatusOr<std::vector<ModelTensor>> ModuleTensors(const torch::jit::Module& module) {
  std::vector<ModelTensor> tensors;
  for (const NamedTensor& one : TensorsOf(module)) {
    // Buffers of other types are counters and the like, which have no mean over clients.
    const bool is_float = one.tensor.scalar_type() == at::kFloat;
    if (one.kind == TensorKind::kBuffer && (!is_float || one.tensor.numel() == 0)) continue;
    if (!is_float) {
      return absl::InvalidArgumentError(absl::StrCat("parameter '", one.paths[0], "' of the model has the type ",
                                                     std::string(one.tensor.dtype().name()), "; train in float32"));
    }
    tensors.push_back({one.paths[0], one.tensor.sizes().vec(), {}, one.kind});
  }
  return tensors;
}

}  // namespace terse
