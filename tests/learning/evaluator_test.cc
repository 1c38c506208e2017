#include "learning/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/status_details.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"
#include "tests/learning/user_modules.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(EvaluatorTest, AConstantModelScoresItsClass) {
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  // All weights zero but the last layer's biases: the logits are the biases, whatever the image.
  std::vector<float> weights(layout.size(), 0.0f);
  weights[layout.tensors()[7].offset + 4] = 2.0f;
  const auto evaluator = EvaluatorOn(SmallGlyphs(), AdamRun(16)).value();
  const Evaluation evaluation = evaluator->Evaluate(weights).value();
  const Column& labels = SmallGlyphs()->test.targets;
  const double fours =
      static_cast<double>(std::count(labels.data(), labels.data() + labels.count(), 4)) / labels.count();
  EXPECT_DOUBLE_EQ(evaluation.accuracy.value(), fours);
  EXPECT_NEAR(evaluation.loss, std::log(std::exp(2.0) + 9) - 2 * fours, 1e-5);
}

absl::Status RefusalOf(const std::string& source) {
  torch::jit::Module module = Tensors();
  module.define(source);
  RunConfig config = SgdRun(8, 0.1, 0);
  config.model.name = std::string(kTorchScriptModel);
  return MakeEvaluator(config, MakeBlueprint(config.model, Saved(module)).value(), ClusterData(), "cpu").status();
}

TEST(EvaluatorTest, AModuleWithoutAGradientIsRefused) {
  const absl::Status refused =
      RefusalOf("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias).detach()\n");
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("detached from the parameters"));
}

TEST(EvaluatorTest, WhatAModuleThrowsIsOneLineWithDetails) {
  const absl::Status refused = RefusalOf(R"(
def forward(self, x):
    assert x.size(1) == 17, "seventeen features"
    return torch.linear(x, self.weight, self.bias)
)");
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("seventeen features (line "), ::testing::Not(HasSubstr("\n"))));
  EXPECT_THAT(DetailsOf(refused), HasSubstr("Traceback of TorchScript"));
}

TEST(EvaluatorTest, TheLastBatchMayBeShort) {
  auto dataset = std::make_shared<Dataset>();
  *dataset = GlyphDigits({1, 501, 28});
  std::vector<uint8_t> labels(501, 0);
  labels[500] = 1;
  dataset->test.targets = Column::FromBytes({}, labels);
  const std::vector<float> zeros(431080, 0.0f);
  const auto evaluator = EvaluatorOn(dataset, AdamRun(16)).value();
  const Evaluation evaluation = evaluator->Evaluate(zeros).value();
  EXPECT_DOUBLE_EQ(evaluation.accuracy.value(), 500.0 / 501);
  EXPECT_NEAR(evaluation.loss, std::log(10.0), 1e-5);
}

TEST(EvaluatorTest, LocalBuffersAreEstimatedWhateverTheirMomentum) {
  // Clusters far from mean 0 and deviation 1, which a model with its first running statistics cannot tell apart.
  const auto dataset = ClusterData();
  const std::string module = Saved(Normalising());
  RunConfig averaged = SgdRun(60, 0.5, 0), local = averaged;
  averaged.model.name = local.model.name = std::string(kTorchScriptModel);
  averaged.data.partition = local.data.partition = "all";
  local.model.buffers = "local";
  std::shared_ptr<const Blueprint> whole = MakeBlueprint(averaged.model, module).value();
  const auto trainer = MakeLocalTrainer(averaged, {0, 1}, whole, dataset, "cpu").value();
  std::vector<float> weights = whole->StartWeights(1);
  TrainInto(trainer.get(), 900, &weights);  // long enough for running statistics with a momentum of 0.01
  const Evaluation reference = MakeEvaluator(averaged, whole, dataset, "cpu").value()->Evaluate(weights).value();
  EXPECT_GT(reference.accuracy.value(), 0.9);

  std::shared_ptr<const Blueprint> bare = MakeBlueprint(local.model, module).value();
  weights.resize(bare->layout().size());
  const auto evaluator = MakeEvaluator(local, bare, dataset, "cpu").value();
  const Evaluation estimated = evaluator->Evaluate(weights).value();
  EXPECT_NEAR(estimated.loss, reference.loss, 0.02);
  EXPECT_NEAR(estimated.accuracy.value(), reference.accuracy.value(), 0.02);
  EXPECT_TRUE(evaluator->Evaluate(std::vector<float>(weights.size(), 1.0f)).ok());
  EXPECT_EQ(evaluator->Evaluate(weights).value().loss, estimated.loss) << "what was evaluated before has no part in it";

  Dataset only_test = *dataset;
  only_test.train = Examples();
  const auto alone = MakeEvaluator(local, bare, std::make_shared<const Dataset>(std::move(only_test)), "cpu").value();
  EXPECT_NEAR(alone->Evaluate(weights).value().loss, reference.loss, 0.05);
}

TEST(EvaluatorTest, ATextIsScoredSymbolBySymbolWithCarriedState) {
  RunConfig config = SgdRun(4, 1, 0);
  config.model.name = "char_lstm";
  config.model.dropout = 0;
  config.train.unroll = 10;
  const auto dataset = TextData(98);
  const std::vector<float> weights = InitialWeights(config.model, 1).value();
  const Evaluation ten = EvaluatorOn(dataset, config).value()->Evaluate(weights).value();
  EXPECT_NEAR(ten.loss, std::log(98.0), 0.2);
  // Windows of another length over as many symbols, 20 rows of 40, give the same sums.
  config.train.unroll = 39;
  const Evaluation long_window = EvaluatorOn(dataset, config).value()->Evaluate(weights).value();
  config.train.unroll = 13;
  const Evaluation short_window = EvaluatorOn(dataset, config).value()->Evaluate(weights).value();
  EXPECT_NEAR(long_window.loss, short_window.loss, 1e-5);
  EXPECT_EQ(long_window.accuracy, short_window.accuracy);
}

TEST(EvaluatorTest, AModuleThatDoesNotFitTheDataIsRefusedBeforeItIsUsed) {
  RunConfig run = SgdRun(60, 0.5, 0);
  run.model.name = std::string(kTorchScriptModel);
  const auto refusal = [&run](const torch::jit::Module& module, std::shared_ptr<const Dataset> dataset) {
    const absl::Status status =
        MakeEvaluator(run, MakeBlueprint(run.model, Saved(module)).value(), std::move(dataset), "cpu").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(Plain(), SmallGlyphs()),
              AllOf(HasSubstr("the model does not fit"), HasSubstr("[batch, 1, 28, 28]")));
  torch::jit::Module narrow = Tensors();
  narrow.define("def forward(self, x):\n    return torch.linear(x, self.weight, self.bias).sum(1)\n");
  EXPECT_THAT(refusal(narrow, ClusterData()), HasSubstr("its output must suit train.loss (cross_entropy)"));
}

TEST(EvaluatorTest, ATargetAccuracyNeedsALossThatHasOne) {
  RunConfig run = SgdRun(4, 1, 0);
  run.model.name = std::string(kTorchScriptModel);
  run.limits.accuracy = 0.9;
  const auto blueprint = MakeBlueprint(run.model, Saved(Plain())).value();
  EXPECT_TRUE(MakeEvaluator(run, blueprint, ClusterData(), "cpu").ok());
  auto values = std::make_shared<Dataset>();
  values->description = "values";
  values->task = Task::kValues;
  values->test = {Column::FromFloats({kFeatures}, RandomFloats(8 * kFeatures, 1)),
                  Column::FromFloats({kClasses}, RandomFloats(8 * kClasses, 2))};
  const absl::Status refused = MakeEvaluator(run, blueprint, values, "cpu").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "limits.accuracy = 0.9 can never be reached: with train.loss = 'mse' no prediction is right or wrong; use "
            "limits.loss");
  run.limits = {};
  run.limits.patience = 2;
  run.limits.patience_metric = PatienceMetric::kAccuracy;
  EXPECT_THAT(MakeEvaluator(run, blueprint, values, "cpu").status().message(),
              ::testing::HasSubstr("limits.patience_metric = 'accuracy' finds nothing to watch"));
  run.limits.patience_metric = PatienceMetric::kAuto;
  const auto evaluator = MakeEvaluator(run, blueprint, values, "cpu").value();
  const Evaluation evaluation = evaluator->Evaluate(blueprint->StartWeights(1)).value();
  EXPECT_FALSE(evaluation.accuracy.has_value());
  EXPECT_GT(evaluation.loss, 0);
}

TEST(EvaluatorTest, RefusesWhatDoesNotFit) {
  const auto empty = std::make_shared<Dataset>();
  EXPECT_EQ(EvaluatorOn(empty, AdamRun(16)).status().code(), absl::StatusCode::kInvalidArgument);
  empty->no_test = "data.test is 'tset.csv', and so on";
  EXPECT_EQ(EvaluatorOn(empty, AdamRun(16)).status().message(),
            "there is no test set to evaluate on: data.test is 'tset.csv', and so on");
  const auto evaluator = EvaluatorOn(SmallGlyphs(), AdamRun(16)).value();
  EXPECT_EQ(evaluator->Evaluate({1.0f}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace terse
