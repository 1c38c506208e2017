// The average of sparse updates in which silence is not taken for zero: what an update did not send at a coordinate is
// imputed from those who did. Terse's own. The published code of SparseLoCo (Sarfi et al. 2025) averages over the
// senders of a coordinate, which is this rule with full trust and without the bound.
//
// An update of density p leaves out 1 - p of its coordinates because others were larger, not because nothing is to be
// done there. Where the clients learn the same, the average over all of them makes a coordinate that one of n sent
// n times too slow. Where they learn different things, the step of one is not that of the others. Which of the two
// holds is seen where several updates sent a coordinate. With update i of weight w_i (1 / n without weights), with v_ij
// what it sent at coordinate j, and with sums over the updates that sent j:
//
//   agreement of a tensor = sum over its j and pairs i < k of 2 w_i w_k v_ij v_kj
//                         / sum over the same      of w_i w_k (v_ij^2 + v_kj^2)
//                           (1: equal values; 0: signs by chance; below 0: opposite ones)
//   A = mean of the agreements, each at least 0, over the tensors that have one
//   trust = max(0, 2 A - 1), rounded to float32: nothing is imputed while half of what is seen is chance
//   W_j = sum of w_i;  W = sum of the weights of all updates
//   step_j = sum of w_i v_ij * min(4, 1 + trust * (W - W_j) / W_j)          (compression/imputation.h)
//
// The least factor is the mean's, and the largest bounds what an update that is alone at a coordinate can do to it:
// four times what it can with the mean.
//
//   one tensor; updates (2, -), (2, 8) -> agreement 1; steps (2, 8).  Updates (2, -), (-2, 8) -> agreement -1; (0, 4)
#ifndef TERSE_COORDINATOR_AGGREGATION_IMPUTED_MEAN_H_
#define TERSE_COORDINATOR_AGGREGATION_IMPUTED_MEAN_H_

#include "coordinator/aggregation/aggregation_rule.h"

namespace terse {

// The contract is AggregationRule's; with a trust of 0 the step is the mean's. O(elements sent). Memory: that of
// UpdateBlocks, 4 bytes for each element of the model and 16 for each tensor. For clients that keep what they did not
// send (AggregationFacts::needs_residuals).
class ImputedMeanRule : public AggregationRule {
 public:
  absl::string_view name() const override { return "imputed_mean"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;
  absl::Status AggregateToForward(const Codec& codec, absl::Span<const absl::string_view> messages,
                                  absl::Span<const float> weights, absl::Span<float> step, float* trust) const override;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_IMPUTED_MEAN_H_
