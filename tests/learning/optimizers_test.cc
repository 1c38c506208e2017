#include "learning/optimizers.h"

#include <cmath>

#include "core/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learning/optimizer_test_name.h"

namespace terse {
namespace {

constexpr int kSize = 1003;  // not a multiple of any vector length

OptimizerSpec Sgd(double momentum, bool nesterov = false) {
  OptimizerSpec spec;
  spec.name = "sgd";
  spec.momentum = momentum;
  spec.nesterov = nesterov;
  return spec;
}

OptimizerSpec Adam() {
  OptimizerSpec spec;
  spec.name = "adam";
  spec.beta1 = 0.9;
  spec.beta2 = 0.999;
  spec.epsilon = 1e-8;
  return spec;
}

std::vector<float> RandomVector(uint64_t seed) {
  Random random(seed);
  std::vector<float> values(kSize);
  for (float& value : values) value = static_cast<float>(random.Uniform(-1, 1));
  values[3] = 0.0f;
  return values;
}

std::unique_ptr<Optimizer> Make(const OptimizerSpec& spec) { return MakeHostOptimizer(spec, kSize).value(); }

void Steps(Optimizer* optimizer, uint64_t first_seed, int count, std::vector<float>* weights) {
  std::vector<float> spare(kSize);
  optimizer->Begin(absl::MakeSpan(spare));
  for (uint64_t t = first_seed; t < first_seed + count; ++t) {
    optimizer->Step(RateAt(t), RandomVector(t).data(), weights->data());
  }
  optimizer->Commit();
}

TEST(OptimizersTest, SgdFollowsItsFormulaInDoublePrecision) {
  for (const OptimizerSpec& spec : {Sgd(0), Sgd(0.9), Sgd(0.9, /*nesterov=*/true)}) {
    const auto optimizer = Make(spec);
    std::vector<float> weights = RandomVector(0);
    std::vector<double> w(weights.begin(), weights.end()), v(kSize, 0.0);
    for (int t = 1; t <= 20; ++t) {
      Steps(optimizer.get(), t, 1, &weights);
      const std::vector<float> g = RandomVector(t);
      for (int i = 0; i < kSize; ++i) {
        v[i] = spec.momentum * v[i] + g[i];
        w[i] -= RateAt(t) * (spec.nesterov ? spec.momentum * v[i] + g[i] : v[i]);
      }
    }
    for (int i = 0; i < kSize; ++i) ASSERT_NEAR(weights[i], w[i], 2e-6) << i << " " << OptimizerTestName(spec);
  }
}

TEST(OptimizersTest, AdamFollowsAlgorithm1InDoublePrecision) {
  const auto optimizer = Make(Adam());
  std::vector<float> weights = RandomVector(0);
  std::vector<double> w(weights.begin(), weights.end()), m(kSize, 0.0), v(kSize, 0.0);
  for (int t = 1; t <= 30; ++t) {
    Steps(optimizer.get(), t, 1, &weights);
    const std::vector<float> g = RandomVector(t);
    for (int i = 0; i < kSize; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(0.9, t)), v_hat = v[i] / (1 - std::pow(0.999, t));
      w[i] -= RateAt(t) * m_hat / (std::sqrt(v_hat) + 1e-8);
    }
  }
  for (int i = 0; i < kSize; ++i) ASSERT_NEAR(weights[i], w[i], 2e-6) << i;
}

TEST(OptimizersTest, AdamsFirstStepIsTheRateAgainstTheSign) {
  const auto optimizer = Make(Adam());
  std::vector<float> weights(kSize, 0.0f);
  Steps(optimizer.get(), 1, 1, &weights);
  const std::vector<float> g = RandomVector(1);
  for (int i = 0; i < kSize; ++i) ASSERT_NEAR(weights[i], g[i] > 0 ? -RateAt(1) : g[i] < 0 ? RateAt(1) : 0, 1e-6) << i;
}

class OptimizerKindsTest : public ::testing::TestWithParam<OptimizerSpec> {};
INSTANTIATE_TEST_SUITE_P(All, OptimizerKindsTest, ::testing::Values(Sgd(0), Sgd(0.9), Sgd(0.9, true), Adam()),
                         [](const auto& info) { return OptimizerTestName(info.param); });

TEST_P(OptimizerKindsTest, ImportedStateContinuesBitForBit) {
  const auto whole = Make(GetParam()), first = Make(GetParam()), second = Make(GetParam());
  std::vector<float> expected = RandomVector(0), weights = expected;
  Steps(whole.get(), 1, 5, &expected);
  Steps(whole.get(), 6, 4, &expected);
  Steps(first.get(), 1, 5, &weights);
  ASSERT_TRUE(second->Import(first->Export()).ok());
  Steps(second.get(), 6, 4, &weights);
  EXPECT_EQ(weights, expected);
  EXPECT_EQ(second->Export().slots, whole->Export().slots);
}

TEST_P(OptimizerKindsTest, RollbackForgetsAllStepsSinceBegin) {
  const auto optimizer = Make(GetParam());
  std::vector<float> weights = RandomVector(0);
  Steps(optimizer.get(), 1, 3, &weights);
  const OptimizerState before = optimizer->Export();
  std::vector<float> spare(kSize + 1);
  for (const int steps : {0, 1, 2}) {
    optimizer->Begin(absl::MakeSpan(spare));
    for (int i = 0; i < steps; ++i) optimizer->Step(RateAt(i), RandomVector(9 + i).data(), weights.data());
    optimizer->Rollback();
    EXPECT_EQ(optimizer->Export().step, 3);
    EXPECT_EQ(optimizer->Export().slots, before.slots);
  }
  // The steps that follow are those that would have followed without the rolled-back ones.
  const auto fresh = Make(GetParam());
  ASSERT_TRUE(fresh->Import(before).ok());
  std::vector<float> same = weights;
  Steps(optimizer.get(), 4, 2, &weights);
  Steps(fresh.get(), 4, 2, &same);
  EXPECT_EQ(weights, same);
}

TEST_P(OptimizerKindsTest, MaskZeroesTheFirstMomentOnly) {
  const auto optimizer = Make(GetParam());
  std::vector<float> weights = RandomVector(0);
  Steps(optimizer.get(), 1, 3, &weights);
  OptimizerState expected = optimizer->Export();
  if (!expected.slots.empty()) expected.slots[0][0] = expected.slots[0][700] = expected.slots[0][kSize - 1] = 0.0f;
  optimizer->MaskFirstMoment({0, 700, kSize - 1, kSize, 0xffffffff});
  EXPECT_EQ(optimizer->Export().slots, expected.slots);
}

TEST_P(OptimizerKindsTest, RefusesAStateOfAnotherShape) {
  const auto optimizer = Make(GetParam());
  const OptimizerState good = optimizer->Export();
  OptimizerState more = good, shorter = good, negative = good;
  more.slots.emplace_back(kSize);
  negative.step = -1;
  EXPECT_EQ(optimizer->Import(more).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(optimizer->Import(negative).code(), absl::StatusCode::kInvalidArgument);
  if (shorter.slots.empty()) return;
  shorter.slots[0].pop_back();
  EXPECT_EQ(optimizer->Import(shorter).code(), absl::StatusCode::kInvalidArgument);
}

TEST(OptimizersTest, UnknownOptimizerNamesTheKnownOnes) {
  OptimizerSpec spec;
  spec.name = "lion";
  EXPECT_THAT(std::string(MakeHostOptimizer(spec, 3).status().message()), ::testing::HasSubstr("sgd, adam"));
}

}  // namespace
}  // namespace terse
