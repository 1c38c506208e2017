// The majority vote of signs: Bernstein et al. 2018, signSGD, Algorithm 3 ("distributed training by majority vote"),
// and Bernstein et al. 2019, which counts its hostile voters. A coordinate moves up or down when more than half of its
// votes do; otherwise it stays.
//
// The paper moves every coordinate by the learning rate. Updates of clients that trained for some steps have a size of
// their own, which falls as training goes on, so a coordinate moves by the size of its tensor: the median, over the
// updates that sent something of it, of the mean magnitude of what each sent. For sbc that is the median of the values
// that the messages carry. Hostile clients that are fewer than half can only choose within the honest sizes.
//
//   one tensor, kSkip; updates (2, -2), (4, 4), (-6, -) -> size 4; votes + + -, and - + -> (4, 0)
#ifndef TERSE_COORDINATOR_AGGREGATION_MAJORITY_VOTE_H_
#define TERSE_COORDINATOR_AGGREGATION_MAJORITY_VOTE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/aggregation/votes.h"

namespace terse {

// The contract is AggregationRule's. Reads the updates twice; O(elements sent), or with kZero O(clients x parameters).
// Memory: that of AggregateVotes, and before it that of UpdateBlocks and 16 bytes for each update and tensor. A
// buffer's value is no direction that could be voted on: for layouts without buffers.
class MajorityVoteRule : public AggregationRule {
 public:
  explicit MajorityVoteRule(AbsentVotes absent) : absent_(absent) {}

  absl::string_view name() const override { return "majority_vote"; }
  absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                         absl::Span<const float> weights, absl::Span<float> step) const override;

 private:
  // One a tensor; 0 where nothing was sent.
  static absl::StatusOr<std::vector<float>> SizesOf(const Codec& codec, absl::Span<const absl::string_view> messages);

  const AbsentVotes absent_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_MAJORITY_VOTE_H_
