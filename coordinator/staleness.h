// Buffered rounds: Nguyen et al. 2022 (FedBuff), Algorithm 1; with a buffer of one update the bounded delay of
// asynchronous SGD (Lian et al. 2015; Yu et al. 2019, assumption 3).
#ifndef TERSE_COORDINATOR_STALENESS_H_
#define TERSE_COORDINATOR_STALENESS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "coordinator/engine_state.h"

namespace terse {

// Returns the versions between the weights that `round` began with and the head; nullopt for a round that never was.
absl::StatusOr<absl::optional<int64_t>> StalenessOf(const EngineState& run, int64_t round);

// Whether an update of that staleness may still be chosen: it is within rounds.staleness and, in a run with epochs,
// still of use to the head's epoch (core/epochs.h).
bool IsUsable(const EngineState& run, int64_t staleness);

// Whether an update of `round` that no round chose can no longer be chosen: in a synchronous run once its round was
// closed or aborted, in a buffered one once it is not usable or the run is to end. This never becomes false again.
absl::StatusOr<bool> IsOver(const EngineState& run, int64_t round);

// FedBuff, section 3: an update counts by 1 / sqrt(1 + staleness) of kFreshShare, rounded down. The same on every
// machine.
inline constexpr int64_t kFreshShare = int64_t{1} << 20;
int64_t StaleShare(int64_t staleness);

}  // namespace terse

#endif  // TERSE_COORDINATOR_STALENESS_H_
