// The way of a relay's engine to the coordinator above. relay/ implements it over a client's session; tests in memory.
// A relay (docs/SCALE.md) is a coordinator of its own clients whose rounds are ordered from above: the mean of a
// round's updates is handed up, as a client hands up its training, and the models come down.
#ifndef TERSE_COORDINATOR_UPSTREAM_H_
#define TERSE_COORDINATOR_UPSTREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "core/cohort.h"
#include "core/id128.h"
#include "core/named_metrics.h"
#include "core/round_plan.h"
#include "core/session_messages.h"

namespace terse {

// The result of a relay's round.
struct CohortResult {
  int64_t round = 0;  // of the relay's own
  std::vector<float> delta;  // mean of the round's updates by their weights; as many floats as the layout has
  double loss = 0;           // likewise
  CohortFacts cohort;
  std::vector<NamedMetric> metrics;
};

class Upstream {
 public:
  virtual ~Upstream() = default;

  // The newest of the engine's rounds whose result is sealed in the relay's own update, or was before; 0: none is. The
  // clients of a round may hear APPLIED from then on, and from then on alone. Asked when an engine resumes.
  virtual int64_t SealedRound() const = 0;

  // Takes the result of a round that is CLOSED, durably. Does not wait: the answer is the event HandedUp. Called in the
  // engine's thread.
  virtual void HandUp(CohortResult result) = 0;
};

// The work that was ordered from above.
struct RoundOrder {
  RoundPlan plan;
  int64_t base_version = 0;
};

// What makes an engine a relay's.
struct RelaySetup {
  Upstream* upstream = nullptr;  // must outlive the engine
  Id128 family;                  // Welcome::family
  Id128 start_hash;              // Welcome::start_hash
  ShardRange shards;             // of the relay, which it hands on to its clients
  int64_t clients = 1;           // that the relay is there for
};

struct RelayState {
  RelaySetup setup;
  absl::optional<RoundOrder> order;  // until the result of a round for it is sealed, or it is withdrawn
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPSTREAM_H_
