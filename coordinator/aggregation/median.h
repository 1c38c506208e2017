// The coordinate-wise median: Yin et al. 2018, Byzantine-Robust Distributed Learning, Definition 1 and Algorithm 1
// (option I). For an even number of votes it is the mean of the two in the middle. While fewer than half of a
// coordinate's votes are hostile it lies within the honest ones.
//
//   votes 1, 5, 100 -> 5;  votes 1, 5 -> 3
#ifndef TERSE_COORDINATOR_AGGREGATION_MEDIAN_H_
#define TERSE_COORDINATOR_AGGREGATION_MEDIAN_H_

#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/aggregation/votes.h"

namespace terse {

// The contract is AggregationRule's. O(elements sent), or with kZero O(clients x parameters).
class MedianRule : public AggregationRule {
 public:
  explicit MedianRule(AbsentVotes absent) : absent_(absent) {}

  absl::string_view name() const override { return "median"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;

 private:
  const AbsentVotes absent_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_MEDIAN_H_
