// Gradients of runs with epochs, against what training does with the same data.
#include "learning/gradient_tasks.h"

#include <cmath>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

using ::testing::Each;

constexpr int64_t kClients = 5;

RunConfig EpochsRun(int64_t batch_size) {
  RunConfig config = SgdRun(batch_size, 1, 0);
  config.model.name = "perceptron";
  config.train.optimizer.weight_decay = 0.25;
  config.server.name = "svrg";
  config.server.epoch_length = 10;
  return config;
}

std::unique_ptr<LocalTrainer> TrainerOf(const RunConfig& config) {
  return TrainerOn(SmallGlyphs(), config, {2, kClients}).value();
}

std::vector<float> Moved(std::vector<float> weights, float by) {
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += by * static_cast<float>(static_cast<int>(i % 7) - 3);
  return weights;
}

std::vector<float> GradientOf(LocalTrainer* trainer, const std::vector<float>& weights,
                              const std::vector<float>& snapshot, float* loss = nullptr) {
  std::vector<float> gradient(weights.size());
  const TrainResult result = trainer->Gradient({weights, snapshot}, nullptr, absl::MakeSpan(gradient)).value();
  if (loss != nullptr) *loss = result.mean_loss;
  return gradient;
}

// Both are sums of the same terms in another order.
void ExpectClose(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-4);
  EXPECT_GT(size, 0);
}

TEST(GradientTasks, TheFullGradientIsThatOfOneLargeBatch) {
  const auto trainer = TrainerOf(EpochsRun(20));
  const int64_t examples = trainer->samples();
  ASSERT_EQ(examples, 1200) << "more than two slices";
  RunConfig plain = EpochsRun(examples);
  plain.server = {};
  const auto sgd = TrainerOf(plain);
  const std::vector<float> weights = trainer->StartWeights();
  float loss = 0;
  std::vector<float> gradient = GradientOf(trainer.get(), weights, {}, &loss);
  std::vector<float> delta(weights.size());
  const TrainResult step = sgd->Train(weights, {1, 0}, nullptr, absl::MakeSpan(delta)).value();
  for (float& value : delta) value = -value;
  ExpectClose(gradient, delta);
  EXPECT_NEAR(loss, step.mean_loss, 1e-4);
}

TEST(GradientTasks, AStepIsTheDifferenceOfTwoGradientsOfABatch) {
  const auto trainer = TrainerOf(EpochsRun(1200));  // all of them, so that the full gradient says what must come out
  const std::vector<float> snapshot = trainer->StartWeights(), weights = Moved(snapshot, 0.01f);
  const std::vector<float> at_snapshot = GradientOf(trainer.get(), snapshot, {});
  std::vector<float> expected = GradientOf(trainer.get(), weights, {});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] -= at_snapshot[i];
  ExpectClose(GradientOf(trainer.get(), weights, snapshot), expected);
  EXPECT_THAT(GradientOf(trainer.get(), snapshot, snapshot), Each(0));
}

TEST(GradientTasks, TheL1TermIsTheServers) {
  RunConfig config = EpochsRun(20);
  const auto without = TrainerOf(config);
  config.train.optimizer.l1 = 0.5;
  const auto with = TrainerOf(config);
  const std::vector<float> snapshot = without->StartWeights(), weights = Moved(snapshot, 0.01f);
  EXPECT_EQ(GradientOf(with.get(), weights, {}), GradientOf(without.get(), weights, {}));
  EXPECT_EQ(GradientOf(with.get(), weights, snapshot), GradientOf(without.get(), weights, snapshot));
}

TEST(GradientTasks, BatchesGoOnAcrossProcesses) {
  const RunConfig config = EpochsRun(20);
  const auto trainer = TrainerOf(config);
  const std::vector<float> snapshot = trainer->StartWeights(), weights = Moved(snapshot, 0.01f);
  const std::vector<float> first = GradientOf(trainer.get(), weights, snapshot);
  const std::string state = trainer->SaveState().value();
  const std::vector<float> full = GradientOf(trainer.get(), weights, {});
  const std::vector<float> second = GradientOf(trainer.get(), weights, snapshot);
  EXPECT_NE(first, second) << "another batch";
  const auto again = TrainerOf(config);
  ASSERT_EQ(again->RestoreState(state), absl::OkStatus());
  EXPECT_EQ(GradientOf(again.get(), weights, snapshot), second) << "a full gradient takes no batch";
  EXPECT_EQ(GradientOf(again.get(), weights, {}), full);
}

TEST(GradientTasks, StoppingTakesNoBatch) {
  const auto trainer = TrainerOf(EpochsRun(20)), undisturbed = TrainerOf(EpochsRun(20));
  const std::vector<float> snapshot = trainer->StartWeights(), weights = Moved(snapshot, 0.01f);
  std::vector<float> gradient(weights.size());
  const auto stop = [] { return false; };
  for (const std::vector<float>& at : {snapshot, std::vector<float>()}) {
    EXPECT_TRUE(absl::IsCancelled(trainer->Gradient({weights, at}, stop, absl::MakeSpan(gradient)).status()));
  }
  EXPECT_EQ(GradientOf(trainer.get(), weights, snapshot), GradientOf(undisturbed.get(), weights, snapshot));
}

TEST(GradientTasks, WeightsThatAreTooLargeAreDivergence) {
  const auto trainer = TrainerOf(EpochsRun(20));
  const std::vector<float> snapshot = trainer->StartWeights(), weights(snapshot.size(), 1e30f);
  std::vector<float> gradient(weights.size());
  for (const std::vector<float>& at : {snapshot, std::vector<float>()}) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(trainer->Gradient({weights, at}, nullptr, absl::MakeSpan(gradient)).status()));
  }
}

TEST(GradientTasks, AreForRunsWithEpochs) {
  RunConfig plain = EpochsRun(20);
  plain.server = {};
  const auto trainer = TrainerOf(plain);
  std::vector<float> weights = trainer->StartWeights(), gradient(weights.size());
  EXPECT_TRUE(absl::IsUnimplemented(trainer->Gradient({weights, {}}, nullptr, absl::MakeSpan(gradient)).status()));
  const auto epochs = TrainerOf(EpochsRun(20));
  const std::vector<float> short_snapshot(3);
  EXPECT_TRUE(
      absl::IsInvalidArgument(epochs->Gradient({weights, short_snapshot}, nullptr, absl::MakeSpan(gradient)).status()));
}

}  // namespace
}  // namespace terse
