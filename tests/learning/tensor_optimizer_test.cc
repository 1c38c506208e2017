#include "learning/tensor_optimizer.h"

#include <vector>

#include "core/random.h"
#include "gtest/gtest.h"
#include "tests/learning/optimizer_test_name.h"

namespace terse {
namespace {

constexpr int kSize = 257;

std::vector<float> RandomVector(uint64_t seed) {
  Random random(seed);
  std::vector<float> values(kSize);
  for (float& value : values) value = static_cast<float>(random.Uniform(-1, 1));
  return values;
}

class TensorOptimizerTest : public ::testing::TestWithParam<OptimizerSpec> {
 protected:
  std::unique_ptr<Optimizer> tensor_ = MakeTensorOptimizer(GetParam(), kSize, c10::kCPU).value();
  std::vector<float> spare_ = std::vector<float>(kSize);
  std::unique_ptr<Optimizer> host_ = MakeHostOptimizer(GetParam(), kSize).value();
};
INSTANTIATE_TEST_SUITE_P(All, TensorOptimizerTest,
                         ::testing::Values(OptimizerSpec{"sgd", 0.05, 0, 0, 0, 0, false},
                                           OptimizerSpec{"sgd", 0.05, 0.9, 0, 0, 0, false},
                                           OptimizerSpec{"sgd", 0.05, 0.9, 0, 0, 0, false, true},
                                           OptimizerSpec{"adam", 0.001, 0, 0.9, 0.999, 1e-8, false},
                                           OptimizerSpec{"adamw", 0.001, 0, 0.9, 0.999, 1e-8, false}),
                         [](const auto& info) { return OptimizerTestName(info.param); });

TEST_P(TensorOptimizerTest, MatchesTheHostOptimizer) {
  std::vector<float> a = RandomVector(0), b = a;
  for (int round = 0; round < 4; ++round) {
    tensor_->Begin(absl::MakeSpan(spare_));
    host_->Begin(absl::MakeSpan(spare_));
    for (int step = 0; step < 3; ++step) {
      const std::vector<float> gradient = RandomVector(1 + 3 * round + step);
      tensor_->Step(RateAt(step), gradient.data(), a.data());
      host_->Step(RateAt(step), gradient.data(), b.data());
    }
    tensor_->Commit();
    host_->Commit();
    tensor_->MaskFirstMoment({0, 100, kSize + 5});
    host_->MaskFirstMoment({0, 100, kSize + 5});
  }
  for (int i = 0; i < kSize; ++i) ASSERT_NEAR(a[i], b[i], 2e-6) << i;
  const OptimizerState left = tensor_->Export(), right = host_->Export();
  EXPECT_EQ(left.step, 12);
  ASSERT_EQ(left.slots.size(), right.slots.size());
  for (size_t slot = 0; slot < left.slots.size(); ++slot) {
    for (int i = 0; i < kSize; ++i) ASSERT_NEAR(left.slots[slot][i], right.slots[slot][i], 2e-6);
  }
}

TEST_P(TensorOptimizerTest, RollbackAndImportRestoreTheState) {
  std::vector<float> weights = RandomVector(0);
  tensor_->Begin(absl::MakeSpan(spare_));
  tensor_->Step(RateAt(1), RandomVector(1).data(), weights.data());
  tensor_->Commit();
  const OptimizerState before = tensor_->Export();
  tensor_->Begin(absl::MakeSpan(spare_));
  tensor_->Step(RateAt(2), RandomVector(2).data(), weights.data());
  tensor_->Rollback();
  EXPECT_EQ(tensor_->Export().step, 1);
  EXPECT_EQ(tensor_->Export().slots, before.slots);
  const auto other = MakeTensorOptimizer(GetParam(), kSize, c10::kCPU).value();
  ASSERT_TRUE(other->Import(before).ok());
  EXPECT_EQ(other->Export().slots, before.slots);
}

}  // namespace
}  // namespace terse
