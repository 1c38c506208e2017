// FedAdagrad, FedYogi and FedAdam: Reddi et al. 2021, Adaptive Federated Optimization, Algorithm 2.
//
//   m_t = beta1 * m_{t-1} + (1 - beta1) * average
//   v_t = v_{t-1} + average^2                                                    adagrad
//         v_{t-1} - (1 - beta2) * average^2 * sign(v_{t-1} - average^2)          yogi
//         beta2 * v_{t-1} + (1 - beta2) * average^2                              adam
//   step = learning_rate * m_t / (sqrt(v_t) + tau)
//
// v_{-1} is tau^2, the least that the paper allows. There is no correction of the bias, as there is none in the paper.
#ifndef TERSE_COORDINATOR_SERVER_OPTIMIZER_ADAPTIVE_H_
#define TERSE_COORDINATOR_SERVER_OPTIMIZER_ADAPTIVE_H_

#include <string>

#include "coordinator/server_optimizer/server_optimizer.h"
#include "core/run_config.h"

namespace terse {

// The contract is ServerOptimizer's. The state is m, then v.
class AdaptiveServerOptimizer : public ServerOptimizer {
 public:
  enum class Rule { kAdagrad, kYogi, kAdam };

  AdaptiveServerOptimizer(Rule rule, const ServerOptimizerSpec& spec);

  absl::string_view name() const override;
  int vectors() const override { return 2; }
  void Begin(absl::Span<float> state) const override;
  void Step(absl::Span<float> average, absl::Span<const float> before, absl::Span<float> after) const override;

 private:
  template <typename NextV>
  void StepWith(NextV next_v, absl::Span<float> average, absl::Span<const float> before, absl::Span<float> after) const;

  const Rule rule_;
  const float learning_rate_;
  const float beta1_;
  const float beta2_;
  const float tau_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_OPTIMIZER_ADAPTIVE_H_
