#include "coordinator/relay_step.h"

#include "compression/aggregate.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<ServerStep>> RelayStep::Make(const RunConfig& config, const DownstreamCodecs& codecs) {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const AggregationRule> rule, MakeAggregationRule(config.aggregation));
  return std::unique_ptr<ServerStep>(new RelayStep(codecs, std::move(rule)));
}

absl::Status RelayStep::Restore(absl::Span<const float>, absl::Span<const float> state) {
  if (state.empty()) return absl::OkStatus();
  return absl::DataLossError("a relay's checkpoint has no state of the server");
}

absl::StatusOr<ServerStep::Result> RelayStep::MakeStep(int64_t, absl::Span<const float> weights,
                                                       absl::Span<const absl::string_view> messages,
                                                       absl::Span<const int64_t> samples, int64_t total, int64_t) {
  Result result;
  result.weights.resize(weights.size());
  TERSE_RETURN_IF_ERROR(
      rule_->Aggregate(codecs_.updates, messages, AveragingWeights(samples, total), absl::MakeSpan(result.weights)));
  TERSE_RETURN_IF_ERROR(CheckWeights(result.weights));
  return result;
}

absl::Status RelayStep::Apply(absl::string_view downstream, absl::Span<float> weights) {
  return ApplyDownstream(codecs_, downstream, &scratch_, weights);
}

}  // namespace terse
