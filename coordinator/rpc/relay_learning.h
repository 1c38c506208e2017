// The model of a relay's run: its layout, and the weights with which the relay joined. Nobody evaluates it here.
#ifndef TERSE_COORDINATOR_RPC_RELAY_LEARNING_H_
#define TERSE_COORDINATOR_RPC_RELAY_LEARNING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/rpc/run_learning.h"
#include "coordinator/upstream.h"
#include "core/session_messages.h"

namespace terse {

// The beginning of a relay's run.
struct RelayStart {
  std::string facts;           // serialized terse.v1.RelayFacts
  std::vector<float> weights;  // of the model's `version`
  int64_t version = 0;
};

// The facts of a Welcome that came for a relay.
std::string SerializeRelayFacts(const Welcome& welcome);

struct RelayFacts {
  Id128 family, start_hash;
  ShardRange shards;
  Layout layout;
};
// DATA_LOSS for bytes that SerializeRelayFacts does not write.
absl::StatusOr<RelayFacts> ParseRelayFacts(absl::string_view bytes);

class RelayLearning : public RunLearning {
 public:
  RelayLearning(Layout layout, std::vector<float> weights) : layout_(std::move(layout)), weights_(std::move(weights)) {}

  const Layout& layout() const override { return layout_; }
  absl::StatusOr<std::vector<float>> InitialWeights() const override { return weights_; }
  Evaluator* evaluator() override { return nullptr; }

 private:
  const Layout layout_;
  const std::vector<float> weights_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RELAY_LEARNING_H_
