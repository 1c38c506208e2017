// The server's step of runs without epochs: the average or another rule of aggregation, the server optimizer, and the
// codec of the downstream direction with the server's own residual. SBC Algorithm 1, lines 18 to 20, is the plain form
// of it.
#ifndef TERSE_COORDINATOR_AVERAGING_STEP_H_
#define TERSE_COORDINATOR_AVERAGING_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/feedback.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "coordinator/server_optimizer/server_optimizer.h"
#include "coordinator/server_step.h"

namespace terse {

// The contract is ServerStep's. The state is that of the optimizer, then the residual. Memory: the average,
// state_size() floats, and in MakeStep as many more, should its step have to be taken back.
class AveragingStep : public ServerStep {
 public:
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  bool has_state() const override { return state_size() > 0; }
  size_t state_size() const override;
  std::vector<float> state() const override;
  absl::Status Restore(absl::Span<const float> weights, absl::Span<const float> state) override;
  absl::StatusOr<Result> MakeStep(int64_t base_version, absl::Span<const float> weights,
                                  absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                  int64_t total, int64_t choice) override;
  void GiveBuffer(std::vector<float> weights) override { average_ = std::move(weights); }
  absl::Status Apply(absl::string_view downstream, absl::Span<float> weights) override;

 private:
  AveragingStep(const RunConfig& config, const DownstreamCodecs& codecs);

  size_t optimizer_floats() const;
  size_t residual_floats() const;
  // Whether a round's step is exactly the average of its updates, so that clients can compute it from the updates.
  bool is_average() const;
  // `average_` becomes the optimizer's step.
  void Optimize();
  // Makes the message of the average, and moves the state and `average_`, which becomes the step that clients take.
  absl::StatusOr<std::string> MakeMessage(int64_t base_version, absl::Span<const absl::string_view> messages,
                                          absl::Span<const int64_t> samples, int64_t total, int64_t choice);
  absl::StatusOr<std::string> Encode(int64_t base_version, int64_t choice);

  const RunConfig config_;
  const DownstreamCodecs codecs_;
  const bool chooses_;  // whether the coded mode has several codings
  std::unique_ptr<const AggregationRule> rule_;
  std::unique_ptr<const ServerOptimizer> optimizer_;  // null: the average is the step
  std::unique_ptr<Feedback> feedback_;                // of kCoded
  std::vector<float> optimizer_state_;
  std::vector<float> average_;  // then the step, and the new weights
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AVERAGING_STEP_H_
