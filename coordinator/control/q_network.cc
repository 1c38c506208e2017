#include "coordinator/control/q_network.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace terse {
namespace {

constexpr uint64_t kWeightsSalt = 0x4d51477261642077;  // apart from the run's other draws

constexpr size_t kInputs = QNetwork::kInputs;
constexpr size_t kHidden = QNetwork::kHidden;
constexpr size_t kOutputs = QNetwork::kOutputs;

// Where the parts of Parameters begin.
constexpr size_t kHiddenBias = kInputs * kHidden;
constexpr size_t kOutputWeights = kHiddenBias + kHidden;
constexpr size_t kOutputBias = kOutputWeights + kHidden * kOutputs;

}  // namespace

QNetwork::QNetwork(uint64_t seed) : parameters_{} {
  const double limit = std::sqrt(6.0 / kInputs);
  Random random(seed ^ kWeightsSalt);
  for (size_t i = 0; i < kHiddenBias; ++i) parameters_[i] = random.Uniform(-limit, limit);
}

std::array<double, kHidden> QNetwork::Hidden(const Inputs& inputs) const {
  std::array<double, kHidden> hidden;
  for (size_t unit = 0; unit < kHidden; ++unit) {
    double sum = parameters_[kHiddenBias + unit];
    for (size_t i = 0; i < kInputs; ++i) sum += parameters_[unit * kInputs + i] * inputs[i];
    hidden[unit] = std::max(0.0, sum);
  }
  return hidden;
}

QNetwork::Outputs QNetwork::Values(const Inputs& inputs) const {
  const std::array<double, kHidden> hidden = Hidden(inputs);
  Outputs values;
  for (size_t output = 0; output < kOutputs; ++output) {
    double sum = parameters_[kOutputBias + output];
    for (size_t unit = 0; unit < kHidden; ++unit) {
      sum += parameters_[kOutputWeights + output * kHidden + unit] * hidden[unit];
    }
    values[output] = sum;
  }
  return values;
}

QNetwork::Parameters QNetwork::Gradient(const Inputs& inputs, size_t output) const {
  const std::array<double, kHidden> hidden = Hidden(inputs);
  Parameters gradient{};
  gradient[kOutputBias + output] = 1;
  for (size_t unit = 0; unit < kHidden; ++unit) {
    if (hidden[unit] <= 0) continue;  // ReLU is flat here
    const size_t weight = kOutputWeights + output * kHidden + unit;
    gradient[weight] = hidden[unit];
    gradient[kHiddenBias + unit] = parameters_[weight];
    for (size_t i = 0; i < kInputs; ++i) gradient[unit * kInputs + i] = parameters_[weight] * inputs[i];
  }
  return gradient;
}

void QNetwork::Learn(const Inputs& inputs, size_t output, double error, double rate) {
  if (std::isnan(error)) return;
  const Parameters gradient = Gradient(inputs, output);
  double square = 0;
  for (const double g : gradient) square += g * g;
  const double step = rate * std::clamp(error, -1.0, 1.0) / std::max(1.0, square);
  for (size_t i = 0; i < gradient.size(); ++i) parameters_[i] += step * gradient[i];
}

}  // namespace terse
