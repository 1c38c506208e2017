#include "learning/models/script_net.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace terse {
namespace {

constexpr Start kZeros = {Start::Rule::kConstant, 0};
constexpr Start kOnes = {Start::Rule::kConstant, 1};

}  // namespace

void ScriptNet::Line(absl::string_view text) { absl::StrAppend(&lines_, "    ", text, "\n"); }

void ScriptNet::Parameter(absl::string_view name, std::vector<int64_t> shape, Start start) {
  parameters_.push_back({std::string(name), std::move(shape), start});
}

void ScriptNet::Conv(absl::string_view name, int64_t in, int64_t out, Window window, absl::string_view from,
                     absl::string_view to, bool bias) {
  Parameter(absl::StrCat(name, ".weight"), {out, in, window.size, window.size}, kernels_);
  if (bias) Parameter(absl::StrCat(name, ".bias"), {out}, kZeros);
  const std::string bias_name = bias ? absl::StrCat("self.", name, ".bias") : "None";
  Line(absl::StrFormat("%s = torch.conv2d(%s, self.%s.weight, %s, [%d, %d], [%d, %d])", to, from, name, bias_name,
                       window.stride, window.stride, window.padding, window.padding));
}

void ScriptNet::BatchNorm(absl::string_view name, int64_t channels, absl::string_view from, absl::string_view to,
                          bool relu) {
  Parameter(absl::StrCat(name, ".weight"), {channels}, kOnes);
  Parameter(absl::StrCat(name, ".bias"), {channels}, kZeros);
  buffers_.push_back({absl::StrCat(name, ".running_mean"), {channels}, kZeros, TensorKind::kBuffer});
  buffers_.push_back({absl::StrCat(name, ".running_var"), {channels}, kOnes, TensorKind::kBuffer});
  Line(
      absl::StrFormat("%s = torch.batch_norm(%s, self.%s.weight, self.%s.bias, self.%s.running_mean, "
                      "self.%s.running_var, self.training, %g, %g, False)",
                      to, from, name, name, name, name, normalisation_.momentum, normalisation_.epsilon));
  if (relu) Line(absl::StrFormat("%s = torch.relu_(%s)", to, to));
}

void ScriptNet::Linear(absl::string_view name, int64_t in, int64_t out, absl::string_view from, absl::string_view to,
                       bool relu) {
  Parameter(absl::StrCat(name, ".weight"), {out, in}, matrices_);
  Parameter(absl::StrCat(name, ".bias"), {out}, kZeros);
  const std::string call = absl::StrFormat("torch.linear(%s, self.%s.weight, self.%s.bias)", from, name, name);
  Line(absl::StrCat(to, " = ", relu ? absl::StrCat("torch.relu_(", call, ")") : call));
}

ModelDefinition ScriptNet::Finish(absl::string_view name, Element input, std::vector<int64_t> input_shape,
                                  int64_t classes, absl::string_view result) && {
  ModelDefinition model;
  model.name = std::string(name);
  model.tensors = std::move(parameters_);
  model.tensors.insert(model.tensors.end(), buffers_.begin(), buffers_.end());
  Line(absl::StrCat("return ", result));
  model.source = absl::StrCat("def forward(self, x):\n", lines_);
  model.input = input;
  model.input_shape = std::move(input_shape);
  model.classes = classes;
  return model;
}

}  // namespace terse
