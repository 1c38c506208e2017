// The average of the updates: SBC Algorithm 1, line 18 (Sattler et al. 2018), weighted where the round is. A single
// hostile client moves it as far as it likes.
#ifndef TERSE_COORDINATOR_AGGREGATION_MEAN_H_
#define TERSE_COORDINATOR_AGGREGATION_MEAN_H_

#include "coordinator/aggregation/aggregation_rule.h"

namespace terse {

// The contract is AggregationRule's. AverageUpdates, on as many threads as AggregationThreads finds worth it.
class MeanRule : public AggregationRule {
 public:
  absl::string_view name() const override { return "mean"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_MEAN_H_
