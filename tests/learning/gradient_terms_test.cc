#include "learning/gradient_terms.h"

#include <ATen/ATen.h>

#include <cmath>

#include "gtest/gtest.h"
#include "tests/learning/small_data.h"

namespace terse {
namespace {

// A bias lies between matrices, and buffers behind them.
Layout SomeLayout() {
  return Layout::Create(
             {{"a", {3, 4}}, {"b", {2, 2, 2}}, {"bias", {5}}, {"c", {2, 3}}, {"mean", {4, 2}, TensorKind::kBuffer}})
      .value();
}

bool IsMatrix(int64_t i) { return i < 20 || i >= 25; }

constexpr int64_t kParameters = 31;

std::vector<float> Applied(const TrainSpec& train) {
  const GradientTerms terms(train, SomeLayout());
  at::Tensor gradient = RandomTensor({kParameters}, 1);
  const at::Tensor weights = RandomTensor({kParameters}, 2);
  weights[3] = 0;
  terms.Apply(terms.needs_start() ? RandomTensor({kParameters}, 3) : at::Tensor(), weights, &gradient);
  return {gradient.data_ptr<float>(), gradient.data_ptr<float>() + kParameters};
}

// The formula in plain double precision.
std::vector<double> Expected(const TrainSpec& train) {
  const std::vector<float> g = RandomFloats(kParameters, 1), start = RandomFloats(kParameters, 3);
  std::vector<float> w = RandomFloats(kParameters, 2);
  w[3] = 0;
  std::vector<double> sum(g.begin(), g.end());
  double square = 0;
  for (int64_t i = 0; i < kParameters; ++i) {
    if (IsMatrix(i)) sum[i] += train.optimizer.weight_decay * w[i];
    if (IsMatrix(i)) sum[i] += train.optimizer.l1 * ((w[i] > 0) - (w[i] < 0));
    sum[i] += train.proximal * (static_cast<double>(w[i]) - start[i]);
    square += sum[i] * sum[i];
  }
  const double norm = std::sqrt(square), clip = train.optimizer.clip_norm;
  for (double& value : sum) value *= clip > 0 && norm > clip ? clip / norm : 1;
  return sum;
}

TrainSpec Train(double weight_decay, double l1, double proximal, double clip_norm) {
  TrainSpec train;
  train.optimizer.weight_decay = weight_decay;
  train.optimizer.l1 = l1;
  train.optimizer.clip_norm = clip_norm;
  train.proximal = proximal;
  return train;
}

TEST(GradientTermsTest, FollowTheirFormulaAloneAndTogether) {
  for (const TrainSpec& train : {Train(0, 0, 0, 0), Train(0.3, 0, 0, 0), Train(0, 0.2, 0, 0), Train(0, 0, 0.7, 0),
                                 Train(0, 0, 0, 1.5), Train(0, 0, 0, 100), Train(0.3, 0.2, 0.7, 2)}) {
    const std::vector<float> applied = Applied(train);
    const std::vector<double> expected = Expected(train);
    for (int64_t i = 0; i < kParameters; ++i) EXPECT_NEAR(applied[i], expected[i], 1e-6) << i;
  }
}

TEST(GradientTermsTest, AdamwDecaysTheWeightsOfMatricesAndLeavesTheGradient) {
  TrainSpec train = Train(0.3, 0, 0, 0);
  train.optimizer.name = "adamw";
  EXPECT_EQ(Applied(train), RandomFloats(kParameters, 1));
  const std::vector<float> before = RandomFloats(kParameters, 2);
  const at::Tensor weights = RandomTensor({kParameters}, 2);
  GradientTerms(train, SomeLayout()).Decay(0.5, weights);
  for (int64_t i = 0; i < kParameters; ++i) {
    EXPECT_NEAR(weights[i].item<float>(), before[i] * (IsMatrix(i) ? 1 - 0.5 * 0.3 : 1), 1e-6) << i;
  }
  train.optimizer.name = "adam";
  const at::Tensor same = RandomTensor({kParameters}, 2);
  GradientTerms(train, SomeLayout()).Decay(0.5, same);
  EXPECT_TRUE(same.equal(RandomTensor({kParameters}, 2)));
}

TEST(GradientTermsTest, WithoutTermsTheGradientKeepsItsBits) {
  EXPECT_EQ(Applied(Train(0, 0, 0, 0)), RandomFloats(kParameters, 1));
  EXPECT_EQ(Applied(Train(0, 0, 0, 100)), RandomFloats(kParameters, 1)) << "a short gradient is not clipped";
}

TEST(GradientTermsTest, TheFirstStepHasNoProximalTerm) {
  const GradientTerms terms(Train(0, 0, 0.7, 0), SomeLayout());
  EXPECT_TRUE(terms.needs_start());
  at::Tensor gradient = RandomTensor({kParameters}, 1) * 1e-6;
  const at::Tensor before = gradient.clone(), weights = RandomTensor({kParameters}, 2);
  terms.Apply(weights, weights, &gradient);
  EXPECT_TRUE(gradient.equal(before));
}

}  // namespace
}  // namespace terse
