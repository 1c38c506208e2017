// Bulyan of Krum: El Mhamdi, Guerraoui and Rouault 2018, The Hidden Vulnerability of Distributed Learning in Byzantium,
// section 4. First theta = n - 2 f updates are selected, one at a time: the one with Krum's least score among those
// that are left. Then each coordinate is the mean of the votes of the selected that are closest to their median: all
// but 2 f of them. Needs n >= 4 f + 3.
//
// Readings: among r that are left a score has r - f - 2 neighbours, at least 1, because the last selections have fewer
// left than Krum needs; two that are each other's only neighbour tie, and the one that is closer to all that are left
// comes first. Where only m < theta votes are there (AbsentVotes), m - 2 f count, at least 1. Where two votes are as
// far from the median, the smaller one counts.
#ifndef TERSE_COORDINATOR_AGGREGATION_BULYAN_H_
#define TERSE_COORDINATOR_AGGREGATION_BULYAN_H_

#include <cstdint>
#include <vector>

#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/aggregation/closeness.h"
#include "coordinator/aggregation/votes.h"

namespace terse {

// The contract is AggregationRule's. Time: that of Closeness, O(updates^3) for the selection, and that of the trimmed
// mean. Memory: that of Closeness, then that of AggregateVotes.
class BulyanRule : public AggregationRule {
 public:
  BulyanRule(int64_t byzantine, AbsentVotes absent) : byzantine_(byzantine), absent_(absent) {}

  absl::string_view name() const override { return "bulyan"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;

 private:
  const int64_t byzantine_;
  const AbsentVotes absent_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_BULYAN_H_
