#include "learning/export.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstring>
#include <sstream>

#include "core/random.h"
#include "gtest/gtest.h"
#include "learning/blueprint.h"
#include "learning/models/model_table.h"
#include "learning/script_model.h"

namespace terse {
namespace {

std::shared_ptr<const Blueprint> Lenet5() { return MakeBlueprint({"lenet5_caffe"}).value(); }

at::Tensor SomeImages() {
  at::Tensor x = at::empty({3, 1, 28, 28});
  Random random(4);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = static_cast<float>(random.Uniform());
  return x;
}

TEST(ExportTorchScriptTest, TheFileGivesTheModelsLogits) {
  const std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 5).value();
  const std::string bytes = ExportTorchScript(*Lenet5(), weights).value();
  std::istringstream in(bytes);
  torch::jit::Module loaded = torch::jit::load(in);

  const ModelDefinition definition = FindModel({"lenet5_caffe"}).value();
  ScriptModel model(definition, ModelLayout({"lenet5_caffe"}).value(), c10::kCPU);
  model.SetWeights(weights);
  ScriptModel::State state;
  const at::NoGradGuard no_grad;
  const at::Tensor expected = model.Forward(SomeImages(), &state);
  const at::Tensor logits = loaded.forward({SomeImages()}).toTensor();
  EXPECT_EQ(logits.sizes(), at::IntArrayRef({3, 10}));
  EXPECT_LT((logits - expected).abs().max().item<float>(), 1e-5f);
  EXPECT_GT(expected.abs().max().item<float>(), 1e-3f);
}

TEST(ExportTorchScriptTest, ParametersKeepNamesShapesAndValues) {
  const std::vector<float> weights = InitialWeights({"lenet5_caffe"}, 5).value();
  std::istringstream in(ExportTorchScript(*Lenet5(), weights).value());
  torch::jit::Module loaded = torch::jit::load(in);
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  size_t i = 0;
  for (const auto& parameter : loaded.named_parameters()) {
    ASSERT_LT(i, layout.tensors().size());
    const TensorSpec& tensor = layout.tensors()[i++];
    EXPECT_EQ(parameter.name, tensor.name);
    EXPECT_EQ(parameter.value.sizes().vec(), tensor.shape);
    EXPECT_EQ(std::memcmp(parameter.value.contiguous().data_ptr<float>(), &weights[tensor.offset], 4 * tensor.size), 0);
  }
  EXPECT_EQ(i, layout.tensors().size());
}

TEST(ExportTorchScriptTest, RefusesForeignWeights) {
  EXPECT_EQ(ExportTorchScript(*Lenet5(), {1.0f}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
