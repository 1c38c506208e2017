// The description of a model: its tensors, how they start, and one forward pass that training, evaluation and the
// exported file share.
#ifndef TERSE_LEARNING_MODELS_MODEL_H_
#define TERSE_LEARNING_MODELS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout.h"
#include "core/run_config.h"
#include "learning/datasets/dataset.h"

namespace terse {

// The start of a tensor. fan_in is size / shape[0], fan_out size / shape[1] (for a convolution both with its window).
struct Start {
  enum class Rule {
    kConstant,       // `value` everywhere
    kUniform,        // uniform in +-value
    kUniformFanIn,   // uniform in +-sqrt(value / fan_in). 3: Caffe's xavier; 1: PyTorch's linear and convolution
    kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out))
    kNormal,         // normal, deviation `value`, cut at two deviations
    kNormalFanIn,    // the same, deviation sqrt(value / fan_in)
    kNormalFanOut,   // the same, deviation sqrt(value / fan_out)
  };
  Rule rule = Rule::kConstant;
  double value = 0;
};

struct ModelTensor {
  std::string name;  // "module.parameter": "conv1.weight"
  std::vector<int64_t> shape;
  Start start;
  TensorKind kind = TensorKind::kParameter;
};

struct ModelDefinition {
  std::string name;
  // The tensors in the order of the flat vector: parameters, then buffers.
  std::vector<ModelTensor> tensors;
  // TorchScript methods, among them
  //   def forward(self, x):  logits or values of a batch, [batch, ...]
  // or, for models that carry a state from one piece of a text to the next,
  //   def forward(self, x, state: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:  logits [batch, time, classes], state
  //   def initial_state(self, batch: int) -> List[Tensor]:  the state at the start of a text, float, [..., batch, ...]
  // Tensors are read as self.conv1.weight; self.training says whether to drop out and to update buffers.
  std::string source;
  Element input = Element::kByte;    // kByte and kFloat: floats; kInt32: symbols, [batch, time]
  std::vector<int64_t> input_shape;  // of one example: {channels, rows, columns}; empty for symbols
  int64_t classes = 0;               // width of the output: classes, symbols or values
  bool carries_state = false;
  bool draws = false;  // whether training draws random numbers (dropout)
};

// A setting of a ModelSpec, or the model's own where there is none: below 1 for numbers of things, below 0 for rates.
inline int64_t OrDefault(int64_t setting, int64_t value) { return setting > 0 ? setting : value; }
inline double OrDefault(double setting, double value) { return setting >= 0 ? setting : value; }

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_MODEL_H_
