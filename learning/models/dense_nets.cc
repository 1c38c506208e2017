#include "learning/models/dense_nets.h"

#include <utility>

#include "learning/models/script_net.h"

namespace terse {

ModelDefinition Logistic(const ModelSpec& spec) {
  const int64_t inputs = OrDefault(spec.inputs, 123);
  const Start zeros = {Start::Rule::kConstant, 0};
  ScriptNet net(zeros, zeros);
  net.Linear("linear", inputs, 1, "torch.flatten(x, 1)", "x");
  return std::move(net).Finish("logistic", Element::kFloat, {inputs}, 1);
}

ModelDefinition Perceptron(const ModelSpec& spec) {
  const int64_t inputs = OrDefault(spec.inputs, 784), classes = OrDefault(spec.classes, 10);
  constexpr Start kXavier = {Start::Rule::kUniformFanIn, 3};
  ScriptNet net(kXavier, kXavier);
  net.Linear("fc1", inputs, 100, "torch.flatten(x, 1)", "x", /*relu=*/true);
  net.Linear("fc2", 100, classes, "x", "x");
  return std::move(net).Finish("perceptron", Element::kFloat, {inputs}, classes);
}

}  // namespace terse
