#include "learning/script_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_split.h"

namespace terse {

ScriptModel::ScriptModel(const ModelDefinition& definition, const Layout& layout, c10::Device device)
    : device_(device), input_shape_(definition.input_shape), module_(definition.name) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  weights_ = at::zeros({layout.size()}, options);
  gradient_ = at::zeros({layout.size()}, options);
  std::map<std::string, torch::jit::Module> submodules;
  for (const TensorSpec& tensor : layout.tensors()) {
    const std::pair<std::string, std::string> name = absl::StrSplit(tensor.name, absl::MaxSplits('.', 1));
    auto found = submodules.find(name.first);
    if (found == submodules.end()) {
      found = submodules.emplace(name.first, torch::jit::Module(name.first)).first;
      module_.register_module(name.first, found->second);
    }
    parameters_.push_back(
        weights_.narrow(0, tensor.offset, tensor.size).view(tensor.shape).detach().requires_grad_(true));
    gradient_views_.push_back(gradient_.narrow(0, tensor.offset, tensor.size).view(tensor.shape));
    found->second.register_parameter(name.second, parameters_.back(), /*is_buffer=*/false);
  }
  module_.define(definition.forward);
}

void ScriptModel::SetWeights(absl::Span<const float> weights) {
  const at::NoGradGuard no_grad;
  weights_.copy_(at::from_blob(const_cast<float*>(weights.data()), {static_cast<int64_t>(weights.size())}));
}

at::Tensor ScriptModel::Forward(const at::Tensor& x) {
  // The optimising executor specialises a graph after its first runs, so a restored process would round differently
  // from one that never stopped.
  const torch::jit::GraphOptimizerEnabledGuard plain(false);
  return module_.forward({x}).toTensor();
}

float ScriptModel::LossAndGradient(const at::Tensor& x, const at::Tensor& labels) {
  const at::Tensor loss = at::cross_entropy_loss(Forward(x), labels);
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, parameters_);
  for (size_t i = 0; i < gradients.size(); ++i) gradient_views_[i].copy_(gradients[i]);
  return loss.item<float>();
}

at::Tensor ScriptModel::Images(const Examples& examples, absl::Span<const uint32_t> indices) {
  std::vector<int64_t> shape = {static_cast<int64_t>(indices.size())};
  shape.insert(shape.end(), input_shape_.begin(), input_shape_.end());
  at::Tensor bytes = at::empty(shape, at::kByte);
  uint8_t* out = bytes.data_ptr<uint8_t>();
  for (const uint32_t index : indices) {
    std::memcpy(out, &examples.images[index * examples.pixels()], examples.pixels());
    out += examples.pixels();
  }
  return bytes.to(device_).to(at::kFloat).mul_(1.0 / 255);
}

at::Tensor ScriptModel::Labels(const Examples& examples, absl::Span<const uint32_t> indices) {
  at::Tensor labels = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  int64_t* out = labels.data_ptr<int64_t>();
  for (const uint32_t index : indices) *out++ = examples.labels[index];
  return labels.to(device_);
}

}  // namespace terse
