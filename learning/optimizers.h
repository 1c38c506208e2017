// The local optimizers. One step is one fused pass over flat vectors (weights, gradient and state), and the state is
// exact and can be saved: what torch::optim does not give.
//
//   sgd   v = momentum * v + g                                    (no v when momentum is 0)
//         w = w - rate * v                                        Nesterov: w = w - rate * (momentum * v + g)
//   adam  m = beta1 * m + (1 - beta1) * g                         Kingma and Ba 2015, Algorithm 1
//         v = beta2 * v + (1 - beta2) * g^2
//         w = w - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)     t = 1, 2, ...
//   adamw as adam; its weight decay is not in the gradient (gradient_terms.h)
//
// Everything is float32; the two bias corrections are computed in double precision once a step.
#ifndef TERSE_LEARNING_OPTIMIZERS_H_
#define TERSE_LEARNING_OPTIMIZERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/run_config.h"

namespace terse {

// The state of an optimizer between steps. Slot 0 is the first moment (sgd's or adam's), slot 1 adam's second moment;
// adamw's are adam's.
struct OptimizerState {
  int64_t step = 0;  // t, steps done
  std::vector<std::vector<float>> slots;
};

// A transaction's worth of steps at a time: Begin, any number of Step, then Commit, or Rollback to the state at Begin.
// Not thread-safe.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // `spare` is host memory of at least the optimizer's size that nobody else touches until Commit or Rollback: a slot
  // waits there for a Rollback, so that sgd with momentum needs no memory of its own for it.
  virtual void Begin(absl::Span<float> spare) = 0;
  // One step in place with this learning rate; both have the optimizer's size and lie in the memory of its device.
  virtual void Step(double rate, const float* gradient, float* weights) = 0;
  virtual void Commit() = 0;
  virtual void Rollback() = 0;

  // Between transactions only: sets the first moment to zero at these positions; positions beyond the size are ignored.
  virtual void MaskFirstMoment(absl::Span<const int64_t> positions) = 0;
  // The committed state, valid until the next call. Import wants as many slots of the same size as Export gave:
  // INVALID_ARGUMENT and no change otherwise.
  virtual const OptimizerState& Export() = 0;
  virtual absl::Status Import(OptimizerState state) = 0;
};

// Number of state vectors of the optimizer. INVALID_ARGUMENT, with the known names, when there is no such optimizer.
absl::StatusOr<int> OptimizerSlots(const OptimizerSpec& spec);

// Factors of one adam step t (from 1): w -= rate * m / (sqrt(v) * root + epsilon).
struct AdamFactors {
  float rate = 0;  // learning rate / (1 - beta1^t)
  float root = 0;  // 1 / sqrt(1 - beta2^t)
};
AdamFactors AdamFactorsAt(const OptimizerSpec& spec, double rate, int64_t t);

// OK, or INVALID_ARGUMENT when `state` is not one of an optimizer with `slots` vectors of `size` floats.
absl::Status CheckOptimizerState(const OptimizerState& state, int slots, int64_t size);

// An optimizer of `size` weights in host memory. INVALID_ARGUMENT as OptimizerSlots.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeHostOptimizer(const OptimizerSpec& spec, int64_t size);

}  // namespace terse

#endif  // TERSE_LEARNING_OPTIMIZERS_H_
