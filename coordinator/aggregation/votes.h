// Rules that decide coordinate by coordinate: each update that sent a coordinate has a vote there.
#ifndef TERSE_COORDINATOR_AGGREGATION_VOTES_H_
#define TERSE_COORDINATOR_AGGREGATION_VOTES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// The effect of an update at a coordinate that it did not send (AggregationSpec::absent). With m of n updates that sent
// it and R what the rule makes of their votes:
enum class AbsentVotes {
  kShare,  // R * m / n: nobody's vote weighs more than in an average
  kSkip,   // R: who alone sent a coordinate decides it
  kZero    // the rule over n votes, n - m of them zero
};

// The step at a flat position from at least one vote, which it may reorder.
using CombineVotes = absl::FunctionRef<float(int64_t position, absl::Span<float> votes)>;

// Overwrites all of `step`; a coordinate that nobody sent gets zero, and no element is the negative zero. The same for
// any order of the messages when that holds for `combine`. INVALID_ARGUMENT as UpdateBlocks. Memory: that of
// UpdateBlocks, and half as much.
absl::Status AggregateVotes(const Codec& codec, absl::Span<const absl::string_view> messages, AbsentVotes absent,
                            CombineVotes combine, absl::Span<float> step);

// Checks what a rule other than the mean was given: INVALID_ARGUMENT for weights or buffers that it does not take
// (core/aggregation_facts.h), for weights that are not one an update, for fewer messages than it needs with so many
// that may be hostile, and for a step of another size.
absl::Status CheckRound(absl::string_view rule, const Codec& codec, absl::Span<const absl::string_view> messages,
                        absl::Span<const float> weights, int64_t byzantine, absl::Span<const float> step);

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_VOTES_H_
