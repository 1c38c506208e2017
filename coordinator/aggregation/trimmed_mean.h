// The coordinate-wise trimmed mean: Yin et al. 2018, Byzantine-Robust Distributed Learning, Definition 2 and Algorithm
// 1 (option II). The beta m largest and the beta m smallest of m votes are left out, and the others averaged. The paper
// takes beta m for whole; here it is rounded up, but one vote (of an odd m) or two (of an even one) always stay. Robust
// while no more than beta m of a coordinate's votes are hostile.
//
//   beta = 0.2, votes -9, 1, 2, 3, 50 -> 2
#ifndef TERSE_COORDINATOR_AGGREGATION_TRIMMED_MEAN_H_
#define TERSE_COORDINATOR_AGGREGATION_TRIMMED_MEAN_H_

#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/aggregation/votes.h"

namespace terse {

// The contract is AggregationRule's. Sums in double, from the smallest vote on. O(elements sent x log clients), or with
// kZero O(clients x log clients x parameters).
class TrimmedMeanRule : public AggregationRule {
 public:
  // beta from 0 to 0.5.
  TrimmedMeanRule(double beta, AbsentVotes absent) : beta_(beta), absent_(absent) {}

  absl::string_view name() const override { return "trimmed_mean"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;

 private:
  const double beta_;
  const AbsentVotes absent_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_TRIMMED_MEAN_H_
