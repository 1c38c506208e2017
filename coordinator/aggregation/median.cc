#include "coordinator/aggregation/median.h"

#include "core/median.h"
#include "core/status.h"

namespace terse {

absl::Status MedianRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                   absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  return AggregateVotes(
      codec, messages, absent_, [](int64_t, absl::Span<float> votes) { return MedianOf(votes); }, step);
}

}  // namespace terse
