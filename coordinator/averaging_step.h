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

// The contract is ServerStep's. The state is that of the optimizer, then the residual. Each round makes the next one
// beside it, and no round copies it: so a step can be taken back, and a checkpoint reads one state while rounds make
// others. Memory: twice state_size() floats and two models, and state_size() more while a state is held.
class AveragingStep : public ServerStep {
 public:
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  bool has_state() const override { return state_size() > 0; }
  size_t state_size() const override;
  HeldState state() override;
  absl::Status Restore(absl::Span<const float> weights, absl::Span<const float> state) override;
  absl::StatusOr<Result> MakeStep(int64_t base_version, absl::Span<const float> weights,
                                  absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                  int64_t total, int64_t choice) override;
  void GiveBuffer(std::vector<float> weights) override { spare_ = std::move(weights); }
  absl::Status Apply(absl::string_view downstream, absl::Span<float> weights) override;

 private:
  AveragingStep(const RunConfig& config, const DownstreamCodecs& codecs);

  size_t optimizer_floats() const;
  size_t residual_floats() const;
  // Whether clients can make a round's step themselves of its updates.
  bool may_forward() const;
  bool is_coded() const { return state_->feedback != nullptr; }
  // average_ becomes the optimizer's step, whose next state is in next_optimizer_.
  void Optimize();
  // Makes the message of average_, and in step_ the step that clients take. The feedback of kCoded has it as pending.
  std::string MakeMessage(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                          int64_t total, float trust);
  absl::StatusOr<std::string> MakeCodedMessage(int64_t base_version, int64_t choice);
  // The step that was made is taken.
  absl::Status Keep();
  // Leaves the memory of the state before a step to who holds that state, if anyone does; else the next is made in it.
  void HandOver(std::vector<float>* memory);

  const RunConfig config_;
  const DownstreamCodecs codecs_;
  const bool chooses_;  // whether the coded mode has several codings
  std::unique_ptr<const AggregationRule> rule_;
  std::unique_ptr<const ServerOptimizer> optimizer_;  // null: the average is the step
  struct State {
    std::vector<float> optimizer;
    std::unique_ptr<Feedback> feedback;  // of kCoded
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  using Memory = std::vector<std::vector<float>>;
  std::shared_ptr<Memory> held_;  // takes the memory of a state that is held, once a round has made the next one
  std::vector<float> next_optimizer_;
  std::vector<float> average_;
  std::vector<float> step_;   // then the new weights
  std::vector<float> spare_;  // to build weights in
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_AVERAGING_STEP_H_
