// Policies that decide, round by round, how long clients train and how their updates are coded: what SBC (Sattler et
// al. 2018) calls temporal and gradient sparsity, or the bits of a quantizer (MQGrad). One policy, one file pair; the
// table is controller_table.h.
#ifndef TERSE_COORDINATOR_CONTROL_CONTROLLER_H_
#define TERSE_COORDINATOR_CONTROL_CONTROLLER_H_

#include <cstdint>

#include "core/round_plan.h"

namespace terse {

// A committed round as a policy sees it: only what the store keeps, so that a restarted coordinator sees the same.
struct RoundOutcome {
  int64_t round = 0;
  RoundPlan plan;
  int64_t updates = 0;       // chosen
  int64_t update_bytes = 0;  // payload of the chosen updates, together
  double train_loss = 0;     // mean over the chosen clients, of their local steps; finite
  int64_t duration_us = 0;  // from opening the round to committing it, a coordinator that was away included; at least 0
};

// Losses are bounded by this before a policy computes with them: a diverged run must not give it infinities.
inline constexpr double kMostLoss = 1e6;

// A pure function of the configuration and the outcomes so far: no clock, no randomness but the run's seed. After a
// restart the committed rounds are observed again, in order, and the same plans follow. Not thread-safe.
class Controller {
 public:
  virtual ~Controller() = default;

  // The plan of round `round`, which begins at `first_iteration`. Asked again for the next number when a round was
  // aborted, without an Observe between. At least one local step; choice < UpdateChoices(config).size().
  virtual RoundPlan Decide(int64_t round, int64_t first_iteration) const = 0;

  // The round was committed. Called once for each, in order.
  virtual void Observe(const RoundOutcome& outcome) = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_CONTROLLER_H_
