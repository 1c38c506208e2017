// What a model is to Terse: its trainable tensors, how they start, and one forward pass that training, evaluation and
// the exported file share.
#ifndef TERSE_LEARNING_MODELS_MODEL_H_
#define TERSE_LEARNING_MODELS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout.h"

namespace terse {

// How weights (tensors with two or more dimensions) start. Biases (one dimension) start at zero.
enum class StartRule {
  // Uniform in +-sqrt(3 / fan_in), fan_in = size / shape[0]: Caffe's "xavier" filler with its default variance norm.
  kXavierFanIn,
};

struct ModelDefinition {
  std::string name;
  // Trainable tensors in the order of the flat vector. A name is "module.parameter": "conv1.weight".
  std::vector<Layout::Entry> parameters;
  StartRule start = StartRule::kXavierFanIn;
  // TorchScript of `def forward(self, x)`. x is float [batch, input_shape...] in 0..1, the result logits
  // [batch, classes]. Parameters are read as self.conv1.weight.
  std::string forward;
  std::vector<int64_t> input_shape;  // channels, rows, columns
  int64_t classes = 0;
};

}  // namespace terse

#endif  // TERSE_LEARNING_MODELS_MODEL_H_
