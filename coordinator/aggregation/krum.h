// Krum and multi-Krum: Blanchard et al. 2017, Machine Learning with Adversaries, section 4. An update's score is the
// sum of its squared distances to the n - f - 2 updates that are closest to it; the step is the update with the least
// score, or the average of the m updates with the least. Needs n >= 2 f + 3. The paper covers m < n - 2 f - 2, so m is
// n - 2 f - 3, at least 1, unless it is given.
//
//   f = 1, updates (0), (1), (2), (3), (100) -> Krum takes (1): its two closest are at a distance of 1 and 1
#ifndef TERSE_COORDINATOR_AGGREGATION_KRUM_H_
#define TERSE_COORDINATOR_AGGREGATION_KRUM_H_

#include <cstdint>
#include <vector>

#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/aggregation/closeness.h"

namespace terse {

// The contract is AggregationRule's. Time and memory are those of Closeness and of the average of m updates.
class KrumRule : public AggregationRule {
 public:
  // `name` is the row's, a literal. `keep`: m; 0: as above.
  KrumRule(absl::string_view name, int64_t byzantine, int64_t keep) : name_(name), byzantine_(byzantine), keep_(keep) {}

  absl::string_view name() const override { return name_; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;

 private:
  const absl::string_view name_;
  const int64_t byzantine_;
  const int64_t keep_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_KRUM_H_
