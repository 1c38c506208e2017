// The model of a run: the head, its weights, the server's step and the checkpoints of it. A room of the engine
// (engine_state.h) that knows neither the fleet nor the round.
#ifndef TERSE_COORDINATOR_MODEL_H_
#define TERSE_COORDINATOR_MODEL_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "compression/codec.h"
#include "coordinator/background.h"
#include "coordinator/recent_log.h"
#include "coordinator/server_step.h"
#include "core/run_config.h"
#include "storage/run_store.h"

namespace terse {

// Invariants: weights and the server's state are those of head().version, and the weights have the head's hash. Used
// from the engine's thread only.
class Model {
 public:
  // `codec` must outlive the object.
  explicit Model(const Codec* codec) : codec_(codec) {}

  // The newest checkpoint and the log after it give the head. `downstream_codec` is null unless the downstream mode is
  // coded. A relay's server() is a RelayStep. DATA_LOSS when they do not; errors of the store and of ServerStep::Make.
  absl::Status Recover(const RunConfig& config, const Codec* downstream_codec, bool is_relay, RunStore* store);

  const Head& head() const { return head_; }
  // The hash of version 0; zero: not known.
  Id128 start_hash() const { return start_hash_; }
  const std::vector<float>& weights() const { return *weights_; }
  const Layout& layout() const { return codec_->layout(); }
  const Codec& codec() const { return *codec_; }
  ServerStep& server() { return *server_; }

  // The head moves to the version that a step of server() makes, whose weights have this hash and to which `message`
  // leads.
  void Advance(std::vector<float> weights, Id128 hash, std::shared_ptr<const std::string> message);
  // The head jumps to a later version, to which no message leads.
  void Replace(int64_t version, std::vector<float> weights, Id128 hash);
  const RecentLog& recent() const { return recent_; }

  // The head, to be written as a checkpoint; nullopt while one is being written. OnWritten ends that.
  absl::optional<HeldCheckpoint> BeginCheckpoint();
  void OnWritten() {
    checkpoint_running_ = false;
    --readers_;
  }
  void SetCheckpointVersion(int64_t version) { checkpoint_version_ = version; }
  bool checkpoint_running() const { return checkpoint_running_; }
  // The version of the newest checkpoint file.
  int64_t checkpoint_version() const { return checkpoint_version_; }

  // The rounds that were given to the evaluator and are not back.
  const std::set<int64_t>& evaluating() const { return evaluating_; }
  // The head's weights, to be evaluated for that round. EndEvaluation ends that.
  SharedWeights BeginEvaluation(int64_t round) {
    evaluating_.insert(round);
    ++readers_;
    return weights_;
  }
  void EndEvaluation(int64_t round) {
    --readers_;
    evaluating_.erase(round);
  }

 private:
  // Brings weights and the server's state from the version before the message to that of it.
  absl::Status Replay(const LogMessage& message, RunStore* store);

  const Codec* const codec_;
  Head head_;
  Id128 start_hash_;
  std::shared_ptr<std::vector<float>> weights_ = std::make_shared<std::vector<float>>();
  std::unique_ptr<ServerStep> server_;
  RecentLog recent_;
  int64_t checkpoint_version_ = 0;
  bool checkpoint_running_ = false;
  std::set<int64_t> evaluating_;
  int64_t readers_ = 0;  // evaluations and checkpoints that are not back: other threads read weights of this model
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_MODEL_H_
