#include "coordinator/aggregation/mean.h"

#include "compression/aggregate.h"

namespace terse {

absl::Status MeanRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                 absl::Span<const float> weights, absl::Span<float> step) const {
  return AverageUpdates(codec, messages, weights, AggregationThreads(messages), step);
}

}  // namespace terse
