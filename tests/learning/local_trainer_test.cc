#include "learning/local_trainer.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learning/evaluator.h"
#include "tests/learning/optimizer_test_name.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<float> Start() { return InitialWeights({"lenet5_caffe"}, 1).value(); }

TEST(LocalTrainerTest, LearnsToReadRenderedDigits) {
  const auto trainer = MakeTrainer(AdamRun(64));
  std::vector<float> weights = Start();
  const float first = TrainInto(trainer.get(), 10, &weights);
  float last = first;
  for (int round = 0; round < 12; ++round) last = TrainInto(trainer.get(), 10, &weights);
  EXPECT_LT(last, 0.4 * first);
  const auto evaluator = EvaluatorOn(SmallGlyphs(), AdamRun(16)).value();
  EXPECT_GT(evaluator->Evaluate(weights).value().accuracy.value(), 0.85);
}

TEST(LocalTrainerTest, ReportsWhatItDid) {
  const auto trainer = MakeTrainer(AdamRun(16));
  std::vector<float> delta(trainer->layout().size());
  const TrainResult result = trainer->Train(Start(), {3}, nullptr, absl::MakeSpan(delta)).value();
  EXPECT_EQ(result.samples, 48);
  EXPECT_NEAR(result.mean_loss, std::log(10.0), 0.5);
  // Adam moves no weight by much more than its rate in a step.
  float largest = 0;
  for (const float change : delta) largest = std::max(largest, std::abs(change));
  EXPECT_GT(largest, 0.001f);
  EXPECT_LT(largest, 0.0035f);
}

class TrainerKindsTest : public ::testing::TestWithParam<RunConfig> {};
INSTANTIATE_TEST_SUITE_P(All, TrainerKindsTest,
                         ::testing::Values(AdamRun(16), SgdRun(16, 0.05, 0), SgdRun(16, 0.01, 0.9)),
                         [](const auto& info) { return OptimizerTestName(info.param.train.optimizer); });

TEST_P(TrainerKindsTest, RestoredStateContinuesBitForBit) {
  const auto trainer = MakeTrainer(GetParam());
  std::vector<float> weights = Start();
  TrainInto(trainer.get(), 5, &weights);
  const std::string state = trainer->SaveState().value();
  const auto restored = MakeTrainer(GetParam());
  ASSERT_TRUE(restored->RestoreState(state).ok());
  std::vector<float> other = weights;
  TrainInto(trainer.get(), 4, &weights);
  TrainInto(restored.get(), 4, &other);
  EXPECT_EQ(weights, other);
  EXPECT_EQ(trainer->SaveState().value(), restored->SaveState().value());
}

TEST_P(TrainerKindsTest, ACancelledCallLeavesNoTrace) {
  const auto trainer = MakeTrainer(GetParam());
  std::vector<float> weights = Start();
  TrainInto(trainer.get(), 2, &weights);
  const std::string before = trainer->SaveState().value();
  std::vector<float> delta(weights.size());
  for (const int allowed : {0, 1, 3}) {
    int asked = 0;
    const auto result = trainer->Train(
        weights, {5}, [&] { return asked++ < allowed; }, absl::MakeSpan(delta));
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(asked, allowed + 1);
    EXPECT_EQ(trainer->SaveState().value(), before);
  }
  const auto undisturbed = MakeTrainer(GetParam());
  ASSERT_TRUE(undisturbed->RestoreState(before).ok());
  std::vector<float> other = weights;
  TrainInto(trainer.get(), 2, &weights);
  TrainInto(undisturbed.get(), 2, &other);
  EXPECT_EQ(weights, other);
}

TEST(LocalTrainerTest, ShardsTrainOnDifferentData) {
  const auto first = TrainerOn(SmallGlyphs(), AdamRun(16), {0, 2}).value();
  const auto second = TrainerOn(SmallGlyphs(), AdamRun(16), {1, 2}).value();
  std::vector<float> a = Start(), b = a;
  TrainInto(first.get(), 1, &a);
  TrainInto(second.get(), 1, &b);
  EXPECT_NE(a, b);
}

TEST(LocalTrainerTest, SamplesAreTheShardsExamples) {
  int64_t total = 0;
  for (int64_t i = 0; i < 7; ++i) {
    const int64_t samples = TrainerOn(SmallGlyphs(), AdamRun(16), {i, 7}).value()->samples();
    EXPECT_GE(samples, 6000 / 7);
    EXPECT_LE(samples, 6000 / 7 + 1);
    total += samples;
  }
  EXPECT_EQ(total, 6000);
  RunConfig config = AdamRun(16);
  config.data.partition = "all";
  EXPECT_EQ(TrainerOn(SmallGlyphs(), config, {1, 7}).value()->samples(), 6000);
  EXPECT_EQ(TrainerOn(SmallGlyphs(), config, {1, 7}).value()->device(), "cpu");
}

TEST(LocalTrainerTest, MasksMomentumOnlyWhenTheRunSaysSo) {
  for (const bool masking : {false, true}) {
    RunConfig config = SgdRun(16, 0.01, 0.9);
    config.train.optimizer.momentum_masking = masking;
    const auto trainer = MakeTrainer(config);
    std::vector<float> weights = Start();
    TrainInto(trainer.get(), 2, &weights);
    const std::string before = trainer->SaveState().value();
    trainer->MaskMomentum({0, 1, 2, 431079});
    EXPECT_EQ(trainer->SaveState().value() != before, masking);
  }
}

TEST(LocalTrainerTest, MaskedWeightsForgetTheirMomentum) {
  RunConfig config = SgdRun(16, 0.01, 0.9);
  config.train.optimizer.momentum_masking = true;
  const auto trainer = MakeTrainer(config);
  std::vector<float> weights = Start();
  TrainInto(trainer.get(), 3, &weights);
  const auto unmasked = MakeTrainer(config);
  ASSERT_TRUE(unmasked->RestoreState(trainer->SaveState().value()).ok());
  const std::vector<int64_t> positions = {3, 30000, 431075};
  trainer->MaskMomentum(positions);
  std::vector<float> a(weights.size()), b(weights.size());
  ASSERT_TRUE(trainer->Train(weights, {1}, nullptr, absl::MakeSpan(a)).ok());
  ASSERT_TRUE(unmasked->Train(weights, {1}, nullptr, absl::MakeSpan(b)).ok());
  int64_t differing = 0;
  for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i];
  EXPECT_GT(differing, 0);
  EXPECT_LE(differing, static_cast<int64_t>(positions.size()));
}

TEST(LocalTrainerTest, DivergenceIsReportedAndRolledBack) {
  const auto trainer = MakeTrainer(SgdRun(16, 1e30, 0));
  const std::string before = trainer->SaveState().value();
  std::vector<float> delta(trainer->layout().size());
  const absl::Status status = trainer->Train(Start(), {5}, nullptr, absl::MakeSpan(delta)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the loss is not finite at local step 2"), HasSubstr("learning_rate")));
  EXPECT_EQ(trainer->SaveState().value(), before);
}

TEST(LocalTrainerTest, WeightsThatOverflowInTheLastStepAreDivergenceToo) {
  const auto trainer = MakeTrainer(SgdRun(16, std::numeric_limits<float>::infinity(), 0));
  std::vector<float> delta(trainer->layout().size());
  const absl::Status status = trainer->Train(Start(), {1}, nullptr, absl::MakeSpan(delta)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a weight"));
}

TEST(LocalTrainerTest, RefusesForeignState) {
  const std::string state = MakeTrainer(AdamRun(16))->SaveState().value();
  EXPECT_EQ(MakeTrainer(SgdRun(16, 0.1, 0.9))->RestoreState(state).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MakeTrainer(AdamRun(32))->RestoreState(state).code(), absl::StatusCode::kDataLoss);
  const auto other = TrainerOn(SmallGlyphs(), AdamRun(16), {1, 2}).value();
  EXPECT_EQ(other->RestoreState(state).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(other->RestoreState("").code(), absl::StatusCode::kDataLoss);
}

TEST(LocalTrainerTest, RefusesArgumentsOfTheWrongSize) {
  const auto trainer = MakeTrainer(AdamRun(16));
  std::vector<float> weights = Start(), delta(weights.size()), small(5);
  EXPECT_EQ(trainer->Train(small, {1}, nullptr, absl::MakeSpan(delta)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trainer->Train(weights, {1}, nullptr, absl::MakeSpan(small)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(trainer->Train(weights, {0}, nullptr, absl::MakeSpan(delta)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MakeLocalTrainerTest, RefusesRunsThatItCannotServe) {
  const auto code = [](const RunConfig& config, const std::string& device) {
    return TrainerOn(SmallGlyphs(), config, {0, 2}, device).status().code();
  };
  RunConfig model = AdamRun(16), optimizer = AdamRun(16), partition = AdamRun(16);
  model.model.name = "vgg";
  optimizer.train.optimizer.name = "lion";
  partition.data.partition = "random";
  EXPECT_EQ(code(model, "cpu"), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(optimizer, "cpu"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(partition, "cpu"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(AdamRun(0), "cpu"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(AdamRun(16), "tpu"), absl::StatusCode::kInvalidArgument);
}

TEST(MakeLocalTrainerTest, ImagesMustFitTheModel) {
  auto dataset = std::make_shared<Dataset>(*SmallGlyphs());
  dataset->train.features = dataset->train.features.Reshaped({1, 14, 56});
  EXPECT_EQ(TrainerOn(dataset, AdamRun(16), {0, 2}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MakeLocalTrainerTest, CudaWorksOrIsRefusedClearly) {
  const auto trainer = TrainerOn(SmallGlyphs(), AdamRun(16), {0, 2}, "cuda");
  if (!trainer.ok()) {
    EXPECT_EQ(trainer.status().code(), absl::StatusCode::kFailedPrecondition);
    return;
  }
  // One step on both devices; Adam's first step is mostly the gradient's sign, so momentum-free sgd is compared.
  const auto cuda = TrainerOn(SmallGlyphs(), SgdRun(16, 1, 0), {0, 2}, "cuda").value();
  const auto cpu = MakeTrainer(SgdRun(16, 1, 0));
  std::vector<float> a(cpu->layout().size()), b(a.size());
  ASSERT_TRUE(cuda->Train(Start(), {1}, nullptr, absl::MakeSpan(a)).ok());
  ASSERT_TRUE(cpu->Train(Start(), {1}, nullptr, absl::MakeSpan(b)).ok());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3) << i;
}

TEST(TrainerFactoryTest, RefusesADeviceBeforeThereIsARun) {
  EXPECT_EQ(MakeTrainerFactory("", "tpu").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TrainerFactoryTest, LoadsTheDataOfTheRun) {
  const TrainerFactory factory = MakeTrainerFactory("", "cpu").value();
  const auto trainer = factory(AdamRun(16), {3, 4}, "").value();
  EXPECT_EQ(trainer->layout().size(), 431080);
  RunConfig config = AdamRun(16);
  config.data.name = "imagenet";
  EXPECT_EQ(factory(config, {3, 4}, "").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace terse
