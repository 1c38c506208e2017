// A model as a TorchScript module over flat tensors: a row of the model table, or a module that a user made. Includes
// LibTorch; used inside learning/ only.
#ifndef TERSE_LEARNING_SCRIPT_MODEL_H_
#define TERSE_LEARNING_SCRIPT_MODEL_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/layout.h"
#include "learning/batches.h"
#include "learning/loss_table.h"
#include "learning/models/model.h"

namespace terse {

// The module's parameters, and its buffers where the layout has them, are views into one flat tensor, so weights come
// and go in one copy. Every method may throw c10::Error; callers guard with CatchTorch (torch_edge.h). Not thread-safe.
class ScriptModel {
 public:
  // Hidden state of a model that carries one from window to window; empty for the others.
  using State = std::vector<at::Tensor>;

  // Compiles the definition. `layout` is LayoutOf(definition), with or without its buffers.
  ScriptModel(const ModelDefinition& definition, const Layout& layout, c10::Device device);
  // Takes a module over, loaded on the processor; `layout` is that of ModuleTensors(module), with or without its
  // buffers.
  ScriptModel(torch::jit::Module module, const Layout& layout, c10::Device device);
  ScriptModel(const ScriptModel&) = delete;
  ScriptModel& operator=(const ScriptModel&) = delete;

  // Copies layout.size() floats of host memory into parameters and buffers. Buffers beside the layout keep the values
  // of local_buffers(), also when a forward pass threw half-way.
  void SetWeights(absl::Span<const float> weights);
  // float32 [layout.size()] on the device.
  at::Tensor& weights() { return weights_; }
  // float32 [layout.parameters()] on the device. The first call, or LossAndGradient, takes its memory: who evaluates
  // needs none.
  at::Tensor& gradient();
  // Buffers that the layout does not have, of any type; write to them in place.
  const std::vector<at::Tensor>& local_buffers() const { return local_buffers_; }

  // Whether forward drops out and updates buffers.
  void SetTraining(bool training);
  bool carries_state() const { return carries_state_; }
  State InitialState(int64_t batch);

  // The output of x; `state` moves on.
  at::Tensor Forward(const at::Tensor& x, State* state);
  // The training loss of a batch; fills gradient() and moves `state` on, without a path for gradients.
  float LossAndGradient(const Batch& batch, const Loss& loss, State* state);

  // The module for a file: each tensor in memory of its own. Views would be written with all that they are views of.
  torch::jit::Module Detached() &&;

 private:
  // A buffer and an attribute of the module that it stands in. Scripts may put another tensor there.
  struct Buffer {
    at::Tensor tensor;
    torch::jit::Module owner;
    std::string attribute;
  };

  // A parameter and its place in the layout.
  struct Parameter {
    at::Tensor tensor;
    int64_t offset;
  };

  void PlaceInLayout(const TensorSpec& spec, at::Tensor tensor);
  at::Tensor Run(const at::Tensor& x, State* state);
  // Brings every buffer back to its place in the module, with the values that a script put there if wanted.
  void Reattach(bool take_values);

  const c10::Device device_;
  torch::jit::Module module_;
  at::Tensor weights_;
  at::Tensor gradient_;  // undefined until it is asked for
  std::vector<Parameter> parameters_;
  std::vector<at::Tensor> local_buffers_;
  std::vector<Buffer> buffers_;
  bool carries_state_ = false;
};

std::vector<at::Tensor> CloneAll(const std::vector<at::Tensor>& tensors);

// Returns the tensors of a user's module that are trained: its parameters that require a gradient, and its buffers of
// float32, each with the module's own path as its name. Tensors that appear twice (tied weights) count once.
// INVALID_ARGUMENT for parameters that are not float32.
absl::StatusOr<std::vector<ModelTensor>> ModuleTensors(const torch::jit::Module& module);

}  // namespace terse

#endif  // TERSE_LEARNING_SCRIPT_MODEL_H_
