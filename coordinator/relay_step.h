// The step of a relay (docs/SCALE.md): its models come from above, and the mean of a round's updates goes there.
#ifndef TERSE_COORDINATOR_RELAY_STEP_H_
#define TERSE_COORDINATOR_RELAY_STEP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compression/downstream.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/server_step.h"

namespace terse {

// The contract is ServerStep's, but for MakeStep, whose result is no model: `weights` is the aggregate of the updates
// by the rule of the run, and `downstream` is empty. There is no state.
class RelayStep : public ServerStep {
 public:
  // The codecs must outlive it. INVALID_ARGUMENT for a rule that the table refuses.
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  bool has_state() const override { return false; }
  size_t state_size() const override { return 0; }
  HeldState state() override { return {}; }
  absl::Status Restore(absl::Span<const float> weights, absl::Span<const float> state) override;
  absl::StatusOr<Result> MakeStep(int64_t base_version, absl::Span<const float> weights,
                                  absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                  int64_t total, int64_t choice) override;
  absl::Status Apply(absl::string_view downstream, absl::Span<float> weights) override;

 private:
  RelayStep(const DownstreamCodecs& codecs, std::unique_ptr<const AggregationRule> rule)
      : codecs_(codecs), rule_(std::move(rule)) {}

  const DownstreamCodecs codecs_;
  const std::unique_ptr<const AggregationRule> rule_;
  std::vector<float> scratch_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RELAY_STEP_H_
