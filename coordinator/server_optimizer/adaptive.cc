#include "coordinator/server_optimizer/adaptive.h"

#include <algorithm>
#include <cmath>

namespace terse {

AdaptiveServerOptimizer::AdaptiveServerOptimizer(Rule rule, const ServerOptimizerSpec& spec)
    : rule_(rule),
      learning_rate_(static_cast<float>(spec.learning_rate)),
      beta1_(static_cast<float>(spec.beta1)),
      beta2_(static_cast<float>(spec.beta2)),
      tau_(static_cast<float>(spec.tau)) {}

absl::string_view AdaptiveServerOptimizer::name() const {
  return rule_ == Rule::kAdagrad ? "adagrad" : rule_ == Rule::kYogi ? "yogi" : "adam";
}

void AdaptiveServerOptimizer::Begin(absl::Span<float> state) const {
  const auto v = state.begin() + state.size() / 2;
  std::fill(state.begin(), v, 0.0f);
  std::fill(v, state.end(), tau_ * tau_);
}

template <typename NextV>
void AdaptiveServerOptimizer::StepWith(NextV next_v, absl::Span<float> average, absl::Span<const float> before,
                                       absl::Span<float> after) const {
  const size_t size = average.size();
  const float* const m_before = before.data();
  const float* const v_before = before.data() + size;
  float* const m = after.data();
  float* const v = after.data() + size;
  for (size_t i = 0; i < size; ++i) {
    m[i] = beta1_ * m_before[i] + (1 - beta1_) * average[i];
    v[i] = next_v(v_before[i], average[i] * average[i]);
    average[i] = learning_rate_ * m[i] / (std::sqrt(v[i]) + tau_);
  }
}

void AdaptiveServerOptimizer::Step(absl::Span<float> average, absl::Span<const float> before,
                                   absl::Span<float> after) const {
  const float beta2 = beta2_;
  switch (rule_) {
    case Rule::kAdagrad:
      return StepWith([](float v, float square) { return v + square; }, average, before, after);
    case Rule::kYogi:
      return StepWith(
          [beta2](float v, float square) {
            const float change = (1 - beta2) * square;
            return v > square ? v - change : v < square ? v + change : v;
          },
          average, before, after);
    case Rule::kAdam:
      return StepWith([beta2](float v, float square) { return beta2 * v + (1 - beta2) * square; }, average, before,
                      after);
  }
}

}  // namespace terse
