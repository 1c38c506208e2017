// TorchScript modules that a user made, from the bytes of their files to a step and an evaluation.
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cmath>

#include "core/status_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/export.h"
#include "tests/learning/training_fixture.h"
#include "tests/learning/user_modules.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using MadeBlueprint = absl::StatusOr<std::shared_ptr<const Blueprint>>;

MadeBlueprint FromBytes(const std::string& bytes, const std::string& buffers = "averaged") {
  ModelSpec spec;
  spec.name = std::string(kTorchScriptModel);
  spec.buffers = buffers;
  return MakeBlueprint(spec, bytes);
}

std::shared_ptr<const Blueprint> From(const torch::jit::Module& module, const std::string& buffers = "averaged") {
  return FromBytes(Saved(module), buffers).value();
}

std::vector<std::string> Names(const Layout& layout) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : layout.tensors()) names.push_back(tensor.name);
  return names;
}

// One step of plain sgd with rate 1 on every example of `dataset`: minus the gradient, and the buffers' change.
std::vector<float> OneStep(const std::shared_ptr<const Blueprint>& blueprint,
                           const std::shared_ptr<const Dataset>& dataset) {
  RunConfig config = SgdRun(dataset->train_count(), 1, 0);
  config.data.partition = "all";
  const auto trainer = MakeLocalTrainer(config, {0, 1}, blueprint, dataset, "cpu").value();
  std::vector<float> delta(blueprint->layout().size());
  EXPECT_TRUE(trainer->Train(blueprint->StartWeights(1), {1}, nullptr, absl::MakeSpan(delta)).ok());
  return delta;
}

// The gradient of the mean cross-entropy of softmax(x W' + b) in weight and bias, from its formula.
at::Tensor SoftmaxGradient(const at::Tensor& x, const at::Tensor& labels, const at::Tensor& weight,
                           const at::Tensor& bias) {
  const at::Tensor error =
      (at::linear(x, weight, bias).softmax(1) - at::one_hot(labels, kClasses).to(at::kFloat)) / x.size(0);
  return at::cat({error.t().matmul(x).flatten(), error.sum(0)});
}

at::Tensor AllOfClusters() {
  const Column features = ClusterData()->train.features;
  return at::from_blob(const_cast<char*>(features.data()), {features.count(), kFeatures}).clone();
}

at::Tensor LabelsOfClusters() { return at::arange(600, at::kLong).remainder(kClasses); }

void ExpectNear(absl::Span<const float> values, const at::Tensor& expected, float tolerance) {
  ASSERT_EQ(static_cast<int64_t>(values.size()), expected.numel());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected.data_ptr<float>()[i], tolerance) << i;
  }
}

TEST(UserModuleTest, APlainModuleTrainsFromItsOwnWeights) {
  const auto blueprint = From(Plain());
  EXPECT_THAT(Names(blueprint->layout()), ElementsAre("weight", "bias"));
  const std::vector<float> start = blueprint->StartWeights(1);
  ExpectNear(start, at::cat({RandomTensor({12}, 1), RandomTensor({3}, 2)}), 0);
  EXPECT_EQ(start, blueprint->StartWeights(2));
  const at::Tensor gradient = SoftmaxGradient(AllOfClusters(), LabelsOfClusters(),
                                              RandomTensor({kClasses, kFeatures}, 1), RandomTensor({kClasses}, 2));
  ExpectNear(OneStep(blueprint, ClusterData()), -gradient, 1e-4);
}

TEST(UserModuleTest, BuffersTravelWithTheWeightsOrStay) {
  const auto averaged = From(Normalising());
  EXPECT_THAT(Names(averaged->layout()), ElementsAre("weight", "bias", "mean", "variance", "scale"));
  EXPECT_EQ(averaged->layout().parameters(), 15);
  const std::vector<float> delta = OneStep(averaged, ClusterData());
  const at::Tensor x = AllOfClusters();
  ExpectNear(absl::MakeConstSpan(delta).subspan(15, 4), 0.01 * x.mean(0), 1e-5);
  ExpectNear(absl::MakeConstSpan(delta).subspan(19, 4), 0.01 * (x.var(0) - 1), 1e-4);
  EXPECT_EQ(delta[23], 0) << "the scale is a constant";

  const auto local = From(Normalising(), "local");
  EXPECT_THAT(Names(local->layout()), ElementsAre("weight", "bias"));
  EXPECT_NE(local->layout().Hash(), averaged->layout().Hash());
}

// A script may replace a buffer by a result that still knows how it was made.
TEST(UserModuleTest, BuffersThatAScriptReplacesAreFollowed) {
  torch::jit::Module module = Tensors();
  module.register_buffer("seen", at::zeros({kFeatures}));
  module.define(R"(
def forward(self, x):
    if self.training:
        self.seen = self.seen * 0.5 + x.mean(0) * self.weight.sum()
    return torch.linear(x, self.weight, self.bias)
)");
  const auto blueprint = From(module);
  RunConfig config = SgdRun(600, 0, 0);
  config.data.partition = "all";
  const auto trainer = MakeLocalTrainer(config, {0, 1}, blueprint, ClusterData(), "cpu").value();
  std::vector<float> delta(blueprint->layout().size());
  ASSERT_TRUE(trainer->Train(blueprint->StartWeights(1), {3}, nullptr, absl::MakeSpan(delta)).ok());
  const at::Tensor each = AllOfClusters().mean(0) * RandomTensor({12}, 1).sum();
  ExpectNear(absl::MakeConstSpan(delta).subspan(15), 1.75 * each, 1e-3);
}

torch::jit::Module Tied() {
  torch::jit::Module module("user"), left("left"), right("right");
  module.register_attribute("training", c10::BoolType::get(), true);
  const at::Tensor shared = RandomTensor({kFeatures, kFeatures}, 3).requires_grad_(true);
  left.register_parameter("weight", shared, false);
  right.register_parameter("weight", shared, false);
  module.register_module("left", left);
  module.register_module("right", right);
  module.define(
      "def forward(self, x):\n"
      "    return torch.linear(torch.tanh(torch.linear(x, self.left.weight)), self.right.weight)\n");
  return module;
}

TEST(UserModuleTest, TiedWeightsAreOneAndStayTied) {
  const auto blueprint = From(Tied());
  EXPECT_THAT(Names(blueprint->layout()), ElementsAre("left.weight"));
  const std::vector<float> delta = OneStep(blueprint, ClusterData());
  // Both uses add to the gradient: a central difference of the loss in the one matrix.
  const auto loss = [](const at::Tensor& w) {
    const at::Tensor x = AllOfClusters().to(at::kDouble);
    return at::cross_entropy_loss(at::linear(at::linear(x, w).tanh(), w), LabelsOfClusters()).item<double>();
  };
  for (const int64_t i : {0, 5, 14}) {
    at::Tensor above = RandomTensor({kFeatures, kFeatures}, 3).to(at::kDouble), below = above.clone();
    above.data_ptr<double>()[i] += 1e-5;
    below.data_ptr<double>()[i] -= 1e-5;
    EXPECT_NEAR(-delta[i], (loss(above) - loss(below)) / 2e-5, 1e-4) << i;
  }
  std::istringstream file(ExportTorchScript(*blueprint, RandomFloats(16, 9)).value());
  torch::jit::Module exported = torch::jit::load(file);
  EXPECT_TRUE(exported.attr("left").toModule().attr("weight").toTensor().equal(
      exported.attr("right").toModule().attr("weight").toTensor()));
}

TEST(UserModuleTest, FrozenParametersKeepTheirValues) {
  torch::jit::Module module = Tensors();
  module.attr("weight").toTensor().requires_grad_(false);
  module.define("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n");
  const auto blueprint = From(module);
  EXPECT_THAT(Names(blueprint->layout()), ElementsAre("bias"));
  const at::Tensor gradient = SoftmaxGradient(AllOfClusters(), LabelsOfClusters(),
                                              RandomTensor({kClasses, kFeatures}, 1), RandomTensor({kClasses}, 2));
  ExpectNear(OneStep(blueprint, ClusterData()), -gradient.slice(0, 12), 1e-4);
  std::istringstream file(ExportTorchScript(*blueprint, {1, 2, 3}).value());
  torch::jit::Module exported = torch::jit::load(file);
  EXPECT_TRUE(exported.attr("weight").toTensor().equal(RandomTensor({kClasses, kFeatures}, 1)));
  EXPECT_TRUE(exported.attr("bias").toTensor().equal(at::tensor({1.0f, 2.0f, 3.0f})));
}

TEST(UserModuleTest, RefusesModulesThatCannotBeTrained) {
  torch::jit::Module doubles = Plain(), mute = Tensors(), three = Tensors(), empty("empty");
  doubles.register_parameter("late", at::zeros({2}, at::kDouble).requires_grad_(true), false);
  three.define("def forward(self, x, y):\n    return x + y\n");
  empty.define("def forward(self, x):\n    return x\n");
  const auto refusal = [](const torch::jit::Module& module) {
    const absl::Status status = FromBytes(Saved(module)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(doubles), AllOf(HasSubstr("'late'"), HasSubstr("double"), HasSubstr("float32")));
  EXPECT_THAT(refusal(mute), HasSubstr("forward(self, x)"));
  EXPECT_THAT(refusal(three), HasSubstr("initial_state"));
  EXPECT_THAT(refusal(empty), HasSubstr("at least one trainable tensor"));
}

TEST(UserModuleTest, RefusesBytesThatAreNoModule) {
  const std::string file = Saved(Plain());
  std::vector<std::string> bad = {"", "x", std::string(5000, '\0'), "PK\x03\x04 and nothing else"};
  for (size_t size = 1; size < file.size(); size += 97) bad.push_back(file.substr(0, size));
  Random random(3);
  std::string noise(3000, ' ');
  for (char& byte : noise) byte = static_cast<char>(random.Below(256));
  bad.push_back(noise);
  for (const std::string& bytes : bad) {
    const absl::Status status = FromBytes(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bytes.size() << " bytes: " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("torch.jit.save"));
    EXPECT_LT(status.message().size(), 2000u);
  }
}

TEST(UserModuleTest, CarriesAHiddenState) {
  torch::jit::Module module("user");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", RandomTensor({5, 5}, 1).requires_grad_(true), false);
  module.define(R"(
def forward(self, x, state: List[Tensor]) -> Tuple[Tensor, List[Tensor]]:
    h = torch.cumsum(torch.one_hot(x, 5).float(), 1) + state[0].unsqueeze(1)
    return torch.linear(h, self.weight), [h[:, -1]]
def initial_state(self, batch: int) -> List[Tensor]:
    return [torch.zeros([batch, 5])]
)");
  const auto blueprint = From(module);
  RunConfig config = SgdRun(2, 0, 0);
  config.data.partition = "all";
  config.train.unroll = 10;
  const auto dataset = TextData(5);
  const auto trainer = MakeLocalTrainer(config, {0, 1}, blueprint, dataset, "cpu").value();
  std::vector<float> delta(25);
  ASSERT_TRUE(trainer->Train(blueprint->StartWeights(1), {7}, nullptr, absl::MakeSpan(delta)).ok());
  // The state counts the symbols of each row: 70 of them, read from the end of the saved state.
  const std::string state = trainer->SaveState().value();
  std::vector<float> counts(10), expected(10, 0.0f);
  std::memcpy(counts.data(), state.data() + state.size() - 16 - 40, 40);
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 70; ++i) ++expected[5 * row + dataset->train_text.symbols[1500 * row + i]];
  }
  EXPECT_EQ(counts, expected);
  EXPECT_TRUE(MakeEvaluator(config, blueprint, dataset, "cpu").value()->Evaluate(blueprint->StartWeights(1)).ok());
  for (const absl::Status& status :
       {MakeLocalTrainer(SgdRun(8, 0.1, 0), {0, 1}, blueprint, ClusterData(), "cpu").status(),
        MakeEvaluator(SgdRun(8, 0.1, 0), blueprint, ClusterData(), "cpu").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("carries a state"));
  }
}

TEST(UserModuleTest, AForwardThatThrowsLeavesTheTrainerAsItWas) {
  torch::jit::Module module = Tensors();
  module.register_buffer("calls", at::zeros({}, at::kLong));
  module.register_buffer("sum", at::zeros({kFeatures}));
  module.define(R"(
def forward(self, x):
    self.calls = self.calls + 1
    self.sum = self.sum + x.sum(0)
    assert bool(self.calls != 3), "no third call"
    return torch.linear(x, self.weight, self.bias)
)");
  const auto blueprint = From(module, "local");
  const auto trainer = MakeLocalTrainer(SgdRun(8, 0.1, 0.9), {0, 1}, blueprint, ClusterData(), "cpu").value();
  std::vector<float> weights = blueprint->StartWeights(1), delta(weights.size());
  ASSERT_TRUE(trainer->Train(weights, {1}, nullptr, absl::MakeSpan(delta)).ok());
  const std::string before = trainer->SaveState().value();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status status = trainer->Train(weights, {2}, nullptr, absl::MakeSpan(delta)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no third call"));
    EXPECT_EQ(trainer->SaveState().value(), before);
  }
  EXPECT_TRUE(trainer->Train(weights, {1}, nullptr, absl::MakeSpan(delta)).ok()) << "the second call";
}

// Why a trainer of the module on these examples is refused.
absl::Status Misfit(const torch::jit::Module& module, const Examples& train) {
  auto dataset = std::make_shared<Dataset>();
  for (int64_t i = 0; i < train.count(); ++i) {
    dataset->classes = std::max(dataset->classes, static_cast<int64_t>(train.targets.Number(i)) + 1);
  }
  dataset->train = train;
  dataset->train.files = {{"/data/train.npz", 0}};
  const absl::Status status = MakeLocalTrainer(SgdRun(8, 0.1, 0), {0, 1}, From(module), dataset, "cpu").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), Not(AnyOf(HasSubstr("LibTorch"), HasSubstr("\n"))));
  return status;
}

TEST(UserModuleTest, ExamplesThatForwardDoesNotTakeAreShownBeforeTraining) {
  const Examples wide = {Column::FromFloats({5}, RandomFloats(100, 1)), Clusters(20, 1).targets};
  const absl::Status status = Misfit(Plain(), wide);
  EXPECT_EQ(
      status.message(),
      "/data/train.npz, example 0: the run's model does not take the example, float32 [5]; bring the data into the "
      "form that the model was made for, or correct [data]");
  EXPECT_THAT(DetailsOf(status), HasSubstr("LibTorch: "));
}

TEST(UserModuleTest, LabelsThatTheOutputDoesNotHaveAreShownBeforeTraining) {
  Examples examples = Clusters(20, 1);
  std::vector<int64_t> labels(20, 1);
  labels[17] = kClasses;
  examples.targets = Column::FromInt64s({}, labels);
  EXPECT_THAT(
      std::string(Misfit(Plain(), examples).message()),
      HasSubstr("/data/train.npz, example 17: label 3 is not in 0..2, the classes that the run's model tells apart"));
}

TEST(UserModuleTest, AnOutputThatTheLossDoesNotTakeIsShownBeforeTraining) {
  torch::jit::Module module = Tensors();
  module.define(R"(
def forward(self, x):
    return torch.linear(x, self.weight, self.bias)[:, :1]
)");
  Examples examples = Clusters(20, 1);
  std::vector<int64_t> labels(20, 0);
  labels[17] = 1;
  examples.targets = Column::FromInt64s({}, labels);
  EXPECT_THAT(std::string(Misfit(module, examples).message()),
              HasSubstr("has 1 output for an example, and the loss 'cross_entropy' takes two or more; set train.loss = "
                        "'bce_with_logits'"));
}

TEST(UserModuleTest, AClientWithoutTrainingDataIsToldWhy) {
  auto dataset = std::make_shared<Dataset>(*ClusterData());
  dataset->train = {};
  dataset->no_train = "data.train is 'a.npz', and so on";
  EXPECT_EQ(MakeLocalTrainer(SgdRun(8, 0.1, 0), {0, 1}, From(Plain()), dataset, "cpu").status().message(),
            "there is no training data: data.train is 'a.npz', and so on");
}

TEST(UserModuleTest, ALossForOtherTargetsIsRefusedWithTheirKind) {
  RunConfig config = SgdRun(8, 0.1, 0);
  config.train.loss = "mse";
  EXPECT_THAT(std::string(MakeLocalTrainer(config, {0, 1}, From(Plain()), ClusterData(), "cpu").status().message()),
              AllOf(HasSubstr("loss 'mse' does not fit"), HasSubstr("the data (clusters) have classes as targets")));
}

}  // namespace
}  // namespace terse
