// The plans of a run's rounds: from its controller, or the same for every round, and across restarts.
#ifndef TERSE_COORDINATOR_ROUND_PLANS_H_
#define TERSE_COORDINATOR_ROUND_PLANS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "coordinator/engine_state.h"

namespace terse {

// Makes the run's controller, shows it every committed round of the store, counts the iterations up to the head, and
// sets the round's plan to that of the last round. INVALID_ARGUMENT from MakeController; DATA_LOSS for a round without
// a plan; errors of the store.
absl::Status ResumePlans(EngineState& run);

// The plan of the round after this one; nullopt without a controller.
absl::optional<RoundPlan> NextPlan(const EngineState& run);

// Counts the iterations of the closed round, which is about to be committed at `now_us`, and shows it to the
// controller. Nothing may come between but the commit, and when that fails, or this does (DATA_LOSS, errors of the
// store), the run is resumed anew.
absl::Status ObserveCommit(EngineState& run, int64_t now_us);

}  // namespace terse

#endif  // TERSE_COORDINATOR_ROUND_PLANS_H_
