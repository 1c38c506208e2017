// An aggregation rule makes one vector of a round's updates, which the server optimizer turns into the step that the
// model takes. The mean is that of SBC Algorithm 1, line 18; the others bound what some hostile clients can do to it.
// One paper, one file pair; the table is aggregation_table.h, and docs/ROBUSTNESS.md says what each means for sparse
// updates.
#ifndef TERSE_COORDINATOR_AGGREGATION_AGGREGATION_RULE_H_
#define TERSE_COORDINATOR_AGGREGATION_AGGREGATION_RULE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"

namespace terse {

// Immutable and safe to share. A pure function: the same messages in the same order give the same bits on every machine
// and with any number of threads.
class AggregationRule {
 public:
  virtual ~AggregationRule() = default;

  // The row of the table.
  virtual absl::string_view name() const = 0;

  // Overwrites `step`, which has layout().size() elements of the codec. `messages` are validated, in the order of their
  // clients. `weights` are those of AverageUpdates (compression/aggregate.h), for rules that take any (FactsOf,
  // core/aggregation_facts.h). INVALID_ARGUMENT for fewer messages than the rule needs (LeastUpdates, in the same
  // place), for sizes that do not fit, for a message that does not decode, and for sums that overflow; `step` is
  // unspecified then.
  virtual absl::Status Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                 absl::Span<const float> weights, absl::Span<float> step) const = 0;

  // For a rule whose updates may be forwarded (FactsOf): the same, and *trust is that with which ImputeUpdates
  // (compression/aggregate.h) makes the same step of the same messages, bit for bit.
  virtual absl::Status AggregateToForward(const Codec& codec, absl::Span<const absl::string_view> messages,
                                          absl::Span<const float> weights, absl::Span<float> step, float* trust) const {
    *trust = 0;
    return Aggregate(codec, messages, weights, step);
  }
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_AGGREGATION_RULE_H_
