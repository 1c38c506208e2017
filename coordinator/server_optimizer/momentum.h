// Gradient descent with momentum on the server: Hsu et al. 2019 (FedAvgM), section 4.3; with Nesterov's momentum the
// outer optimizer of Douillard et al. 2023 (DiLoCo), section 2, where a learning rate of 0.7 and a momentum of 0.9 did
// best. The part of earlier rounds fades by the momentum each round:
//
//   m_t = momentum * m_{t-1} + average
//   step = learning_rate * m_t, or with Nesterov's learning_rate * (average + momentum * m_t)
#ifndef TERSE_COORDINATOR_SERVER_OPTIMIZER_MOMENTUM_H_
#define TERSE_COORDINATOR_SERVER_OPTIMIZER_MOMENTUM_H_

#include "coordinator/server_optimizer/server_optimizer.h"
#include "core/run_config.h"

namespace terse {

// The contract is ServerOptimizer's. The state is m, zero at first; none without momentum.
class MomentumServerOptimizer : public ServerOptimizer {
 public:
  explicit MomentumServerOptimizer(const ServerOptimizerSpec& spec);

  absl::string_view name() const override { return "sgd"; }
  int vectors() const override { return momentum_ == 0 ? 0 : 1; }
  void Begin(absl::Span<float> state) const override;
  void Step(absl::Span<float> average, absl::Span<const float> before, absl::Span<float> after) const override;

 private:
  const float learning_rate_;
  const float momentum_;
  const bool nesterov_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_OPTIMIZER_MOMENTUM_H_
