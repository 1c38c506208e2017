#include "coordinator/staleness.h"

#include <algorithm>
#include <cmath>

#include "core/epochs.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<absl::optional<int64_t>> StalenessOf(const EngineState& run, int64_t round) {
  // An update of the open round is fresh. A settled round is behind the head, also the last one.
  if (run.round.open() && round == run.round.number()) return absl::make_optional<int64_t>(0);
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> base, run.store()->BaseVersionOf(round));
  if (!base.has_value()) return absl::optional<int64_t>();
  return absl::make_optional(run.model.head().version - *base);
}

bool IsUsable(const EngineState& run, int64_t staleness) {
  return staleness <= run.config->rounds.staleness &&
         IsOfSameUse(*run.config, run.model.head().version - staleness, run.model.head().version);
}

absl::StatusOr<bool> IsOver(const EngineState& run, int64_t round) {
  if (!run.config->rounds.buffered) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RoundState> state, run.store()->GetRoundState(round));
    return state.has_value() && *state != RoundState::kOpen;
  }
  if (run.course.ending.has_value()) return true;  // no round follows
  TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> staleness, StalenessOf(run, round));
  return staleness.has_value() && !IsUsable(run, *staleness);
}

int64_t StaleShare(int64_t staleness) {
  const int64_t square = kFreshShare * kFreshShare / (1 + staleness);
  int64_t share = static_cast<int64_t>(std::sqrt(static_cast<double>(square)));
  while (share * share > square) --share;
  while ((share + 1) * (share + 1) <= square) ++share;
  return std::max<int64_t>(share, 1);
}

}  // namespace terse
