// Learning-rate schedules, FedProx and the other terms as a trainer applies them over a round.
#include <cmath>

#include "core/learning_rate.h"
#include "gtest/gtest.h"
#include "tests/learning/training_fixture.h"

namespace terse {
namespace {

std::vector<float> Initial() { return InitialWeights({"lenet5_caffe"}, 1).value(); }

std::vector<float> Delta(LocalTrainer* trainer, const std::vector<float>& weights, const LocalPlan& plan) {
  std::vector<float> delta(weights.size());
  EXPECT_TRUE(trainer->Train(weights, plan, nullptr, absl::MakeSpan(delta)).ok());
  return delta;
}

std::vector<float> Sum(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(ScheduleTest, RatesDecayAtAndEvery) {
  TrainSpec train;
  train.optimizer.learning_rate = 1;
  train.schedule = {0.5, {10, 20}, 15, 10};
  const std::pair<int64_t, int64_t> decays[] = {{0, 0},  {9, 0},  {10, 1}, {14, 1}, {15, 2},
                                                {19, 2}, {20, 3}, {24, 3}, {25, 4}, {35, 5}};
  for (const auto& [iteration, expected] : decays) {
    EXPECT_EQ(DecaysBefore(train.schedule, iteration), expected) << iteration;
    EXPECT_EQ(LearningRateAt(train, iteration), std::pow(0.5, expected)) << iteration;
  }
}

// Iterations 8 and 9 have the full rate, 10 and 11 a tenth of it.
TEST(ScheduleTest, ARoundThatSpansADecayIsTwoRoundsOfTheRightRates) {
  RunConfig scheduled = SgdRun(16, 0.05, 0.9), full = scheduled, tenth = scheduled;
  scheduled.train.schedule = {0.1, {10}, 0, 0};
  tenth.train.optimizer.learning_rate = 0.005;
  const auto spanning = MakeTrainer(scheduled), before = MakeTrainer(full), after = MakeTrainer(tenth);
  const std::vector<float> delta = Delta(spanning.get(), Initial(), {4, 8});

  const std::vector<float> first = Delta(before.get(), Initial(), {2, 0});
  ASSERT_TRUE(after->RestoreState(before->SaveState().value()).ok());
  const std::vector<float> second = Delta(after.get(), Sum(Initial(), first), {2, 0});
  EXPECT_LT(LargestDifference(delta, Sum(first, second)), 1e-6);
  EXPECT_EQ(spanning->SaveState().value().substr(0, 48), after->SaveState().value().substr(0, 48));

  const auto unscheduled = MakeTrainer(full);
  EXPECT_GT(LargestDifference(delta, Delta(unscheduled.get(), Initial(), {4, 8})), 1e-4);
}

TEST(ScheduleTest, TheTrainerAppliesTheTermsOfTheRun) {
  // After one step of rate 1 without terms the delta is minus the gradient; with terms, minus the terms as well.
  const std::vector<float> start = Initial();
  const Layout layout = ModelLayout({"lenet5_caffe"}).value();
  RunConfig plain = SgdRun(16, 1, 0), decayed = plain, clipped = plain;
  decayed.train.optimizer.weight_decay = 0.5;
  clipped.train.optimizer.clip_norm = 0.01;
  const std::vector<float> bare = Delta(MakeTrainer(plain).get(), start, {1});
  const std::vector<float> with_decay = Delta(MakeTrainer(decayed).get(), start, {1});
  for (const TensorSpec& tensor : layout.tensors()) {
    const bool matrix = tensor.shape.size() > 1;
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      ASSERT_NEAR(with_decay[i], bare[i] - (matrix ? 0.5f * start[i] : 0.0f), 1e-6) << tensor.name;
    }
  }
  double square = 0;
  for (const float change : Delta(MakeTrainer(clipped).get(), start, {1}))
    square += static_cast<double>(change) * change;
  EXPECT_NEAR(std::sqrt(square), 0.01, 1e-5);
}

TEST(ScheduleTest, TheProximalTermPullsBackToTheStartOfTheRound) {
  RunConfig plain = SgdRun(16, 0.1, 0), proximal = plain;
  proximal.train.proximal = 1;
  const auto far = MakeTrainer(plain), near = MakeTrainer(proximal);
  const std::vector<float> start = Initial();
  EXPECT_EQ(Delta(far.get(), start, {1}), Delta(near.get(), start, {1})) << "the first step has nothing to pull";
  // Two steps from one start: w2 = w1 - rate * (g + mu * (w1 - w0)), and w1 is the same for both.
  const auto one = MakeTrainer(plain), two = MakeTrainer(plain), pulled = MakeTrainer(proximal);
  const std::vector<float> first = Delta(one.get(), start, {1});
  const std::vector<float> without = Delta(two.get(), start, {2}), with = Delta(pulled.get(), start, {2});
  for (size_t i = 0; i < start.size(); ++i) ASSERT_NEAR(with[i], without[i] - 0.1f * first[i], 1e-6) << i;
}

}  // namespace
}  // namespace terse
