#include "coordinator/server_optimizer/momentum.h"

#include <algorithm>

namespace terse {

MomentumServerOptimizer::MomentumServerOptimizer(const ServerOptimizerSpec& spec)
    : learning_rate_(static_cast<float>(spec.learning_rate)),
      momentum_(static_cast<float>(spec.momentum)),
      nesterov_(spec.nesterov) {}

void MomentumServerOptimizer::Begin(absl::Span<float> state) const { std::fill(state.begin(), state.end(), 0.0f); }

void MomentumServerOptimizer::Step(absl::Span<float> average, absl::Span<const float> before,
                                   absl::Span<float> after) const {
  const size_t size = average.size();
  if (momentum_ == 0) {
    for (size_t i = 0; i < size; ++i) average[i] = learning_rate_ * average[i];
    return;
  }
  for (size_t i = 0; i < size; ++i) {
    after[i] = momentum_ * before[i] + average[i];
    average[i] = learning_rate_ * (nesterov_ ? average[i] + momentum_ * after[i] : after[i]);
  }
}

}  // namespace terse
