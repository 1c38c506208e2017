// The Q function of MQGrad (Cui et al. 2018, section 4.1): a network of three layers with 5 inputs, 10 hidden units
// with ReLU, and 7 linear outputs,
//
//   h = max(0, W1 x + b1),   Q = W2 h + b2.
//
// MqgradController (mqgrad.h) gives the inputs and outputs their meaning.
//
// Readings, where the paper is silent:
// - Both layers have biases. They start at zero, and so does W2: every Q is 0 before there is evidence, so no output is
//   preferred for its random start. W1 is uniform in +-sqrt(6 / 5) (He et al. 2015, for 5 inputs), from the seed.
// - The derivative of ReLU at 0 is 0.
// Deviation: a step of learning is bounded twice (Learn). The losses' squares are part of |g|^2, so the paper's plain
// step of 0.1 overshoots once losses are above 1 or so.
#ifndef TERSE_COORDINATOR_CONTROL_Q_NETWORK_H_
#define TERSE_COORDINATOR_CONTROL_Q_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace terse {

// A value type in double, with a fixed order of operations. Not thread-safe.
class QNetwork {
 public:
  static constexpr size_t kInputs = 5;
  static constexpr size_t kHidden = 10;
  static constexpr size_t kOutputs = 7;
  static constexpr size_t kParameters = (kInputs + 1) * kHidden + (kHidden + 1) * kOutputs;

  using Inputs = std::array<double, kInputs>;
  using Outputs = std::array<double, kOutputs>;
  using Parameters = std::array<double, kParameters>;  // W1 row by row, b1, W2 row by row, b2

  explicit QNetwork(uint64_t seed);
  explicit QNetwork(const Parameters& parameters) : parameters_(parameters) {}

  Outputs Values(const Inputs& inputs) const;

  // dQ(inputs)[output] / dv for every parameter v. output < kOutputs.
  Parameters Gradient(const Inputs& inputs, size_t output) const;

  // One step that moves Q(inputs)[output] by about rate * error:
  //
  //   v += rate * clamp(error, -1, 1) * g / max(1, |g|^2),   g = Gradient(inputs, output).
  //
  // No step is longer than `rate`: |g| / max(1, |g|^2) <= 1. So the parameters are finite after any number of steps,
  // for inputs up to 10^6 in magnitude and any error, which is taken as 0 if it is not a number. 0 < rate <= 1.
  void Learn(const Inputs& inputs, size_t output, double error, double rate);

  const Parameters& parameters() const { return parameters_; }

 private:
  std::array<double, kHidden> Hidden(const Inputs& inputs) const;

  Parameters parameters_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_Q_NETWORK_H_
