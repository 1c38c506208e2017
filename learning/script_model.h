// A model of the table as a TorchScript module over one flat weight tensor. Includes LibTorch; used inside learning/
// only.
#ifndef TERSE_LEARNING_SCRIPT_MODEL_H_
#define TERSE_LEARNING_SCRIPT_MODEL_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/layout.h"
#include "learning/datasets/dataset.h"
#include "learning/models/model.h"

namespace terse {

// The module's parameters are views into the flat tensor, so weights come and go in one copy. Every method may throw
// c10::Error; callers guard with CatchTorch (torch_edge.h). Not thread-safe.
class ScriptModel {
 public:
  // Compiles the forward pass. `definition` and `layout` belong together.
  ScriptModel(const ModelDefinition& definition, const Layout& layout, c10::Device device);

  // Copies layout.size() floats of host memory into the parameters.
  void SetWeights(absl::Span<const float> weights);
  // The flat tensors, float32 [layout.size()] on the device.
  at::Tensor& weights() { return weights_; }
  at::Tensor& gradient() { return gradient_; }

  // Logits [N, classes] of x, float [N, channels, rows, columns] in 0..1.
  at::Tensor Forward(const at::Tensor& x);
  // Mean cross-entropy of a batch; fills gradient().
  float LossAndGradient(const at::Tensor& x, const at::Tensor& labels);

  // The given examples on the device, as Forward and the loss want them.
  at::Tensor Images(const Examples& examples, absl::Span<const uint32_t> indices);
  at::Tensor Labels(const Examples& examples, absl::Span<const uint32_t> indices);

  const torch::jit::Module& module() const { return module_; }

 private:
  const c10::Device device_;
  const std::vector<int64_t> input_shape_;
  at::Tensor weights_;
  at::Tensor gradient_;
  std::vector<at::Tensor> parameters_;      // leaves, views into weights_
  std::vector<at::Tensor> gradient_views_;  // into gradient_, same order and shapes
  torch::jit::Module module_;
};

}  // namespace terse

#endif  // TERSE_LEARNING_SCRIPT_MODEL_H_
