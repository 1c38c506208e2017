// Every row of the model table is compiled, run forward, trained for a step and run in both modes. The sizes of inputs
// are the least that a model takes, so that the large ones cost one cheap pass.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/random.h"
#include "gtest/gtest.h"
#include "learning/models/model_table.h"
#include "learning/runtime.h"
#include "learning/script_model.h"

namespace terse {
namespace {

struct Sample {
  const char* name;
  std::vector<int64_t> input;  // of a batch
  std::vector<int64_t> output;
  Task task = Task::kClasses;
};

void PrintTo(const Sample& sample, std::ostream* out) { *out << sample.name; }

const Sample kSamples[] = {
    {"lenet5_caffe", {4, 1, 28, 28}, {4, 10}},
    {"alexnet", {1, 3, 32, 32}, {1, 10}},
    {"resnet18", {2, 3, 32, 32}, {2, 100}},
    {"resnet32", {4, 3, 32, 32}, {4, 10}},
    {"resnet50", {2, 3, 64, 64}, {2, 1000}},
    {"resnet110", {2, 3, 32, 32}, {2, 10}},
    {"word_lstm", {2, 3}, {2, 3, 10000}, Task::kText},
    {"char_lstm", {2, 5}, {2, 5, 98}, Task::kText},
    {"ptb_lstm_1500", {1, 2}, {1, 2, 10000}, Task::kText},
    {"char_rnn_512", {2, 5}, {2, 5, 65}, Task::kText},
    {"transformer", {2, 5}, {2, 5, 256}, Task::kText},
    {"transformer_small", {2, 5}, {2, 5, 256}, Task::kText},
    {"mqgrad_cnn", {2, 3, 32, 32}, {2, 10}},
    {"logistic", {4, 123}, {4, 1}, Task::kValues},
    {"perceptron", {4, 784}, {4, 10}},
};

at::Tensor WholeNumbers(const std::vector<int64_t>& shape, int64_t below, uint64_t seed) {
  at::Tensor numbers = at::empty(shape, at::kLong);
  Random random(seed);
  for (int64_t i = 0; i < numbers.numel(); ++i) numbers.data_ptr<int64_t>()[i] = random.Below(below);
  return numbers;
}

at::Tensor Fractions(const std::vector<int64_t>& shape, uint64_t seed) {
  at::Tensor numbers = at::empty(shape);
  Random random(seed);
  for (int64_t i = 0; i < numbers.numel(); ++i) numbers.data_ptr<float>()[i] = static_cast<float>(random.Uniform());
  return numbers;
}

Batch BatchFor(const Sample& sample) {
  const int64_t classes = sample.output.back();
  switch (sample.task) {
    case Task::kText:
      return {WholeNumbers(sample.input, classes, 1), WholeNumbers(sample.input, classes, 2)};
    case Task::kValues:
      return {Fractions(sample.input, 1), Fractions(sample.output, 2).round()};
    default:
      return {Fractions(sample.input, 1), WholeNumbers({sample.input[0]}, classes, 2)};
  }
}

const Loss& LossFor(const Sample& sample) {
  return **FindLoss(sample.task == Task::kValues ? "bce_with_logits" : "auto", sample.task, 0, 0);
}

class ModelsTest : public ::testing::TestWithParam<Sample> {
 protected:
  ModelsTest() : definition_(FindModel({GetParam().name}).value()), layout_(LayoutOf(definition_).value()) {
    ConfigureThreads(1);
  }

  std::unique_ptr<ScriptModel> Started() const {
    auto model = std::make_unique<ScriptModel>(definition_, layout_, c10::kCPU);
    model->SetWeights(StartWeights(definition_, 1));
    return model;
  }

  const ModelDefinition definition_;
  const Layout layout_;
};

INSTANTIATE_TEST_SUITE_P(All, ModelsTest, ::testing::ValuesIn(kSamples),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ModelsTest, EveryRowOfTheTableIsHere) {
  std::vector<std::string> names;
  for (const Sample& sample : kSamples) names.push_back(sample.name);
  EXPECT_EQ(names, ModelNames());
}

TEST_P(ModelsTest, AStepHasALossAndAGradientEverywhere) {
  const Batch batch = BatchFor(GetParam());
  const auto model = Started();
  model->SetTraining(true);
  ScriptModel::State state = model->InitialState(batch.x.size(0));
  EXPECT_EQ(state.empty(), !definition_.carries_state);
  at::manual_seed(1);
  const float loss = model->LossAndGradient(batch, LossFor(GetParam()), &state);
  // An untrained model guesses, some with more confidence.
  const double guess = std::log(std::max<double>(2, GetParam().output.back()));
  EXPECT_GT(loss, 0.2 * guess);
  EXPECT_LT(loss, 2.5 * guess);
  for (const TensorSpec& tensor : layout_.tensors()) {
    if (tensor.kind == TensorKind::kBuffer) continue;
    const at::Tensor gradient = model->gradient().narrow(0, tensor.offset, tensor.size);
    EXPECT_GT(gradient.abs().max().item<float>(), 0) << tensor.name;
    EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << tensor.name;
  }
  for (const at::Tensor& carried : state) EXPECT_GT(carried.abs().max().item<float>(), 0);
}

TEST_P(ModelsTest, OutputsHaveTheirShapeAndTheModesDiffer) {
  const Batch batch = BatchFor(GetParam());
  const auto model = Started();
  const at::NoGradGuard no_grad;
  const auto forward = [&](bool training) {
    ScriptModel::State state = model->InitialState(batch.x.size(0));
    model->SetTraining(training);
    at::manual_seed(1);
    return model->Forward(batch.x, &state);
  };
  const at::Tensor evaluated = forward(false);
  EXPECT_EQ(evaluated.sizes(), at::IntArrayRef(GetParam().output));
  EXPECT_TRUE(forward(false).equal(evaluated));
  const bool has_buffers = layout_.size() > layout_.parameters();
  EXPECT_EQ(!forward(true).equal(evaluated), has_buffers || definition_.draws);
  EXPECT_EQ(!forward(false).equal(evaluated), has_buffers) << "training moves running statistics";
}

}  // namespace
}  // namespace terse
