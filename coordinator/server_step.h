// What happens between the updates of a round and the message that clients receive: the average, the server optimizer,
// and the codec of the downstream direction with the server's own residual. SBC Algorithm 1, lines 18 to 20, is the
// plain form of it.
#ifndef TERSE_COORDINATOR_SERVER_STEP_H_
#define TERSE_COORDINATOR_SERVER_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/downstream.h"
#include "compression/feedback.h"
#include "coordinator/server_optimizer/server_optimizer.h"
#include "core/run_config.h"

namespace terse {

// One per run. Not thread-safe. Its state belongs to the head, as the weights do: Commit makes it durable by the
// round's updates (Aggregate), and a checkpoint has it whole. A restarted coordinator restores the checkpoint's and
// repeats the rounds since; the same updates give the same bits on every machine.
//
// Memory: the average, and state_size() floats.
class ServerStep {
 public:
  // The codecs must outlive it; `codecs.coded` is that of MakeDownstreamCodec. INVALID_ARGUMENT for settings that the
  // tables refuse.
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  // Whether rounds leave anything behind. Without, state() is empty and Repeat is not needed.
  bool has_state() const { return state_size() > 0; }
  // Numbers of the state: those of the optimizer, then the residual.
  size_t state_size() const;
  std::vector<float> state() const;
  // What state() gave, or nothing for the state before the first round. DATA_LOSS when it does not fit.
  absl::Status Restore(absl::Span<const float> state);

  // The downstream message that leads from `base_version` to the next version. `messages` are validated; `samples` and
  // `total` as at BuildDownstream, `choice` as RoundPlan's. INVALID_ARGUMENT, with the state unchanged, when the
  // average overflows or is too large for the optimizer. INTERNAL when the step does not encode: the state is then of
  // no use, and must be restored.
  absl::StatusOr<std::string> Take(int64_t base_version, absl::Span<const absl::string_view> messages,
                                   absl::Span<const int64_t> samples, int64_t total = 0, int64_t choice = 0);

  // What Take needs to be repeated after a restart: the messages, as a kForward message. Empty when there is no state.
  std::string Aggregate(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                        int64_t total = 0) const;
  // Take for what Aggregate made. DATA_LOSS unless it gives `downstream` again.
  absl::Status Repeat(int64_t base_version, absl::string_view aggregate, absl::string_view downstream);

  // weights[i] += step[i], with the operations of every client.
  absl::Status Apply(absl::string_view downstream, absl::Span<float> weights);

 private:
  ServerStep(const RunConfig& config, const DownstreamCodecs& codecs);

  size_t optimizer_floats() const;
  size_t residual_floats() const;
  // `average_` becomes the optimizer's step.
  absl::Status Optimize();
  absl::StatusOr<std::string> Encode(int64_t base_version, int64_t choice);

  const DownstreamCodecs codecs_;
  const DownstreamMode mode_;
  const uint64_t seed_;
  const bool chooses_;                                // whether the coded mode has several codings
  std::unique_ptr<const ServerOptimizer> optimizer_;  // null: the average is the step
  std::unique_ptr<Feedback> feedback_;                // of kCoded
  std::vector<float> optimizer_state_;
  std::vector<float> average_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_STEP_H_
