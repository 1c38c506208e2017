// The way of a relay's engine to the coordinator above. relay/ implements it over a client's session; tests in memory.
// A relay (docs/SCALE.md) is a coordinator of its own clients whose rounds are ordered from above: the mean of a
// round's updates is handed up, as a client hands up its training, and the models come down.
#ifndef TERSE_COORDINATOR_UPSTREAM_H_
#define TERSE_COORDINATOR_UPSTREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "core/cohort.h"
#include "core/id128.h"
#include "core/named_metrics.h"
#include "core/round_plan.h"
#include "core/run_config.h"
#include "core/session_messages.h"

namespace terse {

// The result of a relay's round.
struct CohortResult {
  int64_t round = 0;         // of the relay's own
  std::vector<float> delta;  // mean of the round's updates by their weights; as many floats as the layout has
  std::string bundle;        // in its place, of a relay that forwards: the round's updates (compression/bundle.h)
  double loss = 0;           // mean by the number of clients
  CohortFacts cohort;
  std::vector<NamedMetric> metrics;
};

class Upstream {
 public:
  virtual ~Upstream() = default;

  // The newest round of this lineage whose result is sealed in the relay's own update, or was before; 0: none is. The
  // clients of a round may hear APPLIED from then on, and from then on alone. Asked when an engine resumes: a result
  // that is not sealed then never will be. UNAVAILABLE while one is being sealed.
  virtual absl::StatusOr<int64_t> SealedRound(Id128 lineage) = 0;

  // Takes the result of a round that is CLOSED, durably. Does not wait: the answer is the event HandedUp. Called in the
  // engine's thread.
  virtual void HandUp(CohortResult result) = 0;

  // An ordered round cannot be made, because the model here is another one than above.
  virtual void Decline(const std::string& reason) = 0;
};

// The work that was ordered from above.
struct RoundOrder {
  RoundPlan plan;
  int64_t base_version = 0;
};

// The rounds of a relay, which are its own and not the run's.
struct RelayRounds {
  int64_t clients = 1;          // that the relay is there for: a round begins when they are here, and closes with their
                                // updates
  int64_t quorum = 0;           // fewest updates that may close a round without the others; 0: half of the clients
  double deadline_seconds = 0;  // from opening a round to closing it; 0: four fifths of the run's
  bool forwards = false;        // hands the updates of a round up as they came, and not their mean
};

// The settings of a relay's engine.
struct RelaySetup {
  Upstream* upstream = nullptr;  // must outlive the engine
  Id128 family;                  // Welcome::family
  Id128 start_hash;              // Welcome::start_hash
  ShardRange shards;             // of the relay, which it hands on to its clients
  RelayRounds rounds;
};

// The configuration of a relay's engine: the run's, with the relay's rounds, and without what is decided above.
RunConfig RelayConfig(RunConfig run, const RelayRounds& rounds);

// Makes the runs of a process a relay's.
struct RelayHosting {
  Upstream* upstream = nullptr;  // null: they are not
  RelayRounds rounds;
};

struct RelayState {
  RelaySetup setup;
  absl::optional<RoundOrder> order;  // until the result of a round for it is sealed, or it is withdrawn
  int64_t ordered_us = 0;            // when it came, by the monotonic clock
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_UPSTREAM_H_
