// A server optimizer makes the model's step of a round's average: the average is a pseudo-gradient, and the server has
// an optimizer of its own (Reddi et al. 2021, Adaptive Federated Optimization, Algorithm 1). One paper, one file pair;
// the table is server_optimizer_table.h.
#ifndef TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_H_
#define TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace terse {

// Immutable and safe to share: what it remembers between rounds is in `state`, vectors() times as many floats as the
// model has parameters, one vector behind the other. Additions, multiplications, divisions and square roots of float32
// in a fixed order, so that a restarted coordinator, on any machine, gets the same bits from the same rounds.
class ServerOptimizer {
 public:
  virtual ~ServerOptimizer() = default;

  // The row of the table.
  virtual absl::string_view name() const = 0;
  virtual int vectors() const = 0;

  // Sets `state` to its values before the first round.
  virtual void Begin(absl::Span<float> state) const = 0;

  // Turns the average of a round's updates into the step that the model takes (added to it, not subtracted), in place,
  // and the state `before` into the one `after` it; the two do not overlap, so that who calls can take the step back.
  // Magnitudes of at most kMostAverage give finite steps in any number of rounds.
  virtual void Step(absl::Span<float> average, absl::Span<const float> before, absl::Span<float> after) const = 0;
};

constexpr float kMostAverage = 1e15f;

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_OPTIMIZER_SERVER_OPTIMIZER_H_
