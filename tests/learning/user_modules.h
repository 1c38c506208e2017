// TorchScript modules as users export them. Includes LibTorch.
#ifndef TERSE_TESTS_LEARNING_USER_MODULES_H_
#define TERSE_TESTS_LEARNING_USER_MODULES_H_

#include <torch/csrc/jit/api/module.h>

#include <sstream>
#include <string>

#include "tests/learning/small_data.h"

namespace terse {

inline std::string Saved(const torch::jit::Module& module) {
  std::ostringstream out;
  module.save(out);
  return out.str();
}

// A module without methods that has `training`, a weight [kClasses, kFeatures] and a bias.
inline torch::jit::Module Tensors() {
  torch::jit::Module module("user");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", RandomTensor({kClasses, kFeatures}, 1).requires_grad_(true), false);
  module.register_parameter("bias", RandomTensor({kClasses}, 2).requires_grad_(true), false);
  return module;
}

inline torch::jit::Module Plain() {
  torch::jit::Module module = Tensors();
  module.define("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n");
  return module;
}

// Normalises its features as BatchNorm does, drops some out, and counts its steps in an int64 that it replaces, as
// torch.nn.BatchNorm2d of PyTorch 1 does. Its scale is a buffer that never changes.
inline torch::jit::Module Normalising() {
  torch::jit::Module module = Tensors();
  module.register_buffer("mean", at::zeros({kFeatures}));
  module.register_buffer("variance", at::ones({kFeatures}));
  module.register_buffer("scale", at::full({1}, 2.0));
  module.register_buffer("steps", at::zeros({}, at::kLong));
  module.define(R"(
def forward(self, x):
    if self.training:
        self.steps = self.steps + 1
    y = torch.batch_norm(x, None, None, self.mean, self.variance, self.training, 0.01, 1e-5, False)
    y = torch.dropout(y * self.scale, 0.25, self.training)
    return torch.linear(y, self.weight, self.bias)
)");
  return module;
}

}  // namespace terse

#endif  // TERSE_TESTS_LEARNING_USER_MODULES_H_
