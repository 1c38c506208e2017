// The step between the updates of a round and the message that clients receive. averaging_step is SBC Algorithm 1,
// lines 18 to 20, with a server optimizer and a codec of the downstream direction; svrg_step is for runs with epochs.
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
#include "coordinator/held_state.h"
#include "core/run_config.h"

namespace terse {

// No round takes a weight further. Sums and differences of magnitudes up to here are far from the end of float32's
// range.
inline constexpr float kMostWeight = 1e15f;

// INVALID_ARGUMENT for a weight that is not a number, or is beyond kMostWeight.
absl::Status CheckWeights(absl::Span<const float> weights);

// One per run. Not thread-safe. Its state belongs to the head, as the weights do: Commit makes it durable by the
// round's updates (RoundMessages), and a checkpoint has it whole. A restarted coordinator restores the checkpoint's and
// repeats the rounds since; the same updates give the same bits on every machine.
class ServerStep {
 public:
  virtual ~ServerStep() = default;

  // The codecs must outlive it; `codecs.coded` is that of MakeDownstreamCodec. Restore comes first. INVALID_ARGUMENT
  // for settings that the tables refuse.
  static absl::StatusOr<std::unique_ptr<ServerStep>> Make(const RunConfig& config, const DownstreamCodecs& codecs);

  // Whether rounds leave a state behind that Repeat must bring back after a restart.
  virtual bool has_state() const = 0;
  // The number of floats of state(), which a checkpoint has beside the weights. Both are of a version that StandsAlone
  // (core/epochs.h).
  virtual size_t state_size() const = 0;
  virtual HeldState state() = 0;
  // Goes on from the weights of a checkpoint and the numbers of state() there; nothing for the state before the first
  // round. DATA_LOSS when it does not fit.
  virtual absl::Status Restore(absl::Span<const float> weights, absl::Span<const float> state) = 0;

  // One round's step.
  struct Result {
    std::string downstream;      // the message that leads from `base_version` to the next version
    std::vector<float> weights;  // of that version: bit for bit those that Apply makes of the message, as clients do
  };
  // `weights` are those of `base_version`. `messages` are validated, and without an element that JudgeUpdates always
  // refuses (update_policy.h): so no rule makes more of them than that, but for rounding. `samples` and `total` as at
  // BuildDownstream, `choice` as RoundPlan's. INVALID_ARGUMENT, with the state unchanged, when the average overflows or
  // a weight would be too large to go on with (CheckWeights). INTERNAL when the message does not encode or
  // decode: the state is then of no use, and must be restored.
  virtual absl::StatusOr<Result> MakeStep(int64_t base_version, absl::Span<const float> weights,
                                          absl::Span<const absl::string_view> messages,
                                          absl::Span<const int64_t> samples, int64_t total, int64_t choice) = 0;

  // Takes the weights of a version that nobody needs any more, to build the next ones in: two models then take turns,
  // and no round allocates one.
  virtual void GiveBuffer(std::vector<float> weights) {}

  // Returns the messages, as a kForward message, from which MakeStep is repeated after a restart. Empty when there is
  // no state.
  std::string RoundMessages(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                            int64_t total = 0) const;
  // Repeats MakeStep from the result of RoundMessages, and returns the new weights. DATA_LOSS unless it gives
  // `downstream` again, or the same weights by another form of an exact step: an earlier release may have chosen among
  // fewer.
  absl::StatusOr<std::vector<float>> Repeat(int64_t base_version, absl::Span<const float> weights,
                                            absl::string_view aggregate, absl::string_view downstream);

  // Brings the weights of the version before the message to that of it, with the operations of every client. A message
  // of MakeStep may be applied until the next MakeStep. Fails as ApplyDownstream or ApplyModel.
  virtual absl::Status Apply(absl::string_view downstream, absl::Span<float> weights) = 0;
};

// Returns the key with which stochastic codecs make the server's message, distinct from all keys of clients: the
// message that leads from `base_version` to the next version.
CodecKey ServerKey(const RunConfig& config, int64_t base_version);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SERVER_STEP_H_
