#include "learning/export.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/random.h"
#include "gtest/gtest.h"
#include "learning/blueprint.h"
#include "learning/datasets/dataset_table.h"
#include "learning/models/model_table.h"
#include "learning/script_model.h"
#include "storage/model_files.h"
#include "tests/learning/temp_folder.h"
#include "tests/learning/user_modules.h"
#include "tests/testing/paths.h"

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

// Exports a model in all three forms with numbers other than its start, and an input with its output.
class ExportedModels {
 public:
  void Add(const std::string& name, const Blueprint& blueprint, const at::Tensor& x) {
    const Layout& layout = blueprint.layout();
    std::vector<float> weights = RandomFloats(layout.size(), 3, 0.3);
    for (int64_t i = layout.parameters(); i < layout.size(); ++i) weights[i] = 1 + std::abs(weights[i]);  // variances
    folder_.Write(name + ".pt", ExportTorchScript(blueprint, weights).value());
    folder_.Write(name + ".npz", ExportNpz(layout, weights).value());
    folder_.Write(name + ".safetensors", ExportSafetensors(layout, weights).value());
    const at::Tensor y = OutputOf(blueprint, weights, x);
    const Layout check = Layout::Create({{"x", x.sizes().vec()}, {"y", y.sizes().vec()}}).value();
    const at::Tensor both = at::cat({x.flatten().to(at::kFloat), y.flatten()});
    folder_.Write(name + ".check.npz",
                  ExportNpz(check, {both.data_ptr<float>(), static_cast<size_t>(both.numel())}).value());
    absl::StrAppend(&names_, " ", name);
  }

  // A model of the characters of a text, which is given its beginning.
  void AddText(const std::string& name, const std::string& text) {
    DataSpec data;
    data.name = "text";
    folder_.Write(name + ".txt", text);
    data.train = data.test = name + ".txt";
    const Dataset dataset = LoadDataset(data, folder_.path()).value();
    ModelSpec model = {"char_lstm"};
    model.classes = dataset.classes;
    const std::vector<int32_t>& symbols = dataset.train_text.symbols;
    Add(name, *MakeBlueprint(model).value(),
        at::tensor(std::vector<int64_t>(symbols.begin(), symbols.begin() + 12)).view({1, 12}));
    folder_.Write(name + ".vocabulary.json", ExportVocabulary(dataset.vocabulary));
  }

  // Returns the exit code of the Python script that opens and compares the exports.
  int OpenInPython() const {
    return std::system(
        absl::StrCat("/usr/bin/python3 ", InSource("tests/learning/compare_exports.py"), " ", folder_.path(), names_)
            .c_str());
  }

 private:
  static at::Tensor OutputOf(const Blueprint& blueprint, const std::vector<float>& weights, const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    const std::unique_ptr<ScriptModel> model = blueprint.Make(c10::kCPU);
    model->SetWeights(weights);
    model->SetTraining(false);
    ScriptModel::State state = model->InitialState(x.size(0));
    return model->Forward(x, &state).contiguous();
  }

  TempFolder folder_;
  std::string names_;
};

TEST(ExportTest, PythonOpensEveryFormAndComputesTheSame) {
  ModelSpec local = {"resnet32"}, module = {std::string(kTorchScriptModel)};
  local.buffers = "local";
  ExportedModels models;
  models.Add("lenet5", *Lenet5(), SomeImages());
  models.Add("averaged", *MakeBlueprint({"resnet32"}).value(), RandomTensor({2, 3, 32, 32}, 1));
  models.Add("local", *MakeBlueprint(local).value(), RandomTensor({2, 3, 32, 32}, 1));
  models.Add("lstm", *MakeBlueprint({"char_lstm"}).value(), at::arange(12, at::kLong).view({2, 6}));
  models.Add("user", *MakeBlueprint(module, Saved(Normalising())).value(), RandomTensor({5, kFeatures}, 1));
  models.AddText("text", "\"\xc3\x89t\xc3\xa9\"\tno\\yes\n\xf0\x9f\x99\x82 and so on\n");
  EXPECT_EQ(models.OpenInPython(), 0);
}

TEST(ExportTorchScriptTest, AFileIsAsLargeAsItsTensors) {
  const auto blueprint = MakeBlueprint({"resnet18"}).value();
  const std::vector<float> weights = blueprint->StartWeights(1);
  EXPECT_GT(weights.size(), 10000000u);
  EXPECT_LT(ExportTorchScript(*blueprint, weights).value().size(), 4.2 * weights.size() + 1e6);
}

TEST(ExportTorchScriptTest, LocalBuffersHaveTheirStart) {
  ModelSpec spec = {"resnet32"};
  spec.buffers = "local";
  const auto blueprint = MakeBlueprint(spec).value();
  std::istringstream in(ExportTorchScript(*blueprint, blueprint->StartWeights(1)).value());
  torch::jit::Module bn = torch::jit::load(in).attr("bn").toModule();
  EXPECT_TRUE(bn.attr("running_mean").toTensor().equal(at::zeros({64})));
  EXPECT_TRUE(bn.attr("running_var").toTensor().equal(at::ones({64})));
}

}  // namespace
}  // namespace terse
