// The invariants of docs/PROTOCOL.md as the simulation checks them on what is stored.
#ifndef TERSE_TESTS_SIMULATION_BOOKS_H_
#define TERSE_TESTS_SIMULATION_BOOKS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {

// The meaning of a violated invariant for an update; kOther: neither loss nor doubling can be told.
enum class Harm { kNone, kLost, kDoubled, kOther };

struct Violation {
  Harm harm = Harm::kNone;
  std::string what;
  bool found() const { return harm != Harm::kNone; }
};

// The state that each round has reached, as far as anyone could know: what was durable once stays so.
using History = std::map<int64_t, RoundState>;

// Whether a round is closed on the coordinator's disk, whatever its process has in hand.
absl::StatusOr<bool> IsDurablyClosed(FleetSimulation& fleet);

// I2 and I3 on the coordinator's disk: one version for every committed round; each client's applied updates are a chain
// that ends at its last_applied, each in it once; the replayed log gives every recorded hash; no round went back behind
// `history`, which then learns the newest. The coordinator must be up.
Violation CheckCoordinator(FleetSimulation& fleet, History* history);

// The effects that rollbacks of its disk may have had on a client.
struct PastOf {
  bool may_reset = false;     // it may have lost its residual, and says so
  bool reset_undone = false;  // it may know updates that it had forgotten with a RESET
};

// I1 for client `i`, whose process must be up and without a connection; and where updates are packed, that it and the
// coordinator hold one history of them. Nothing to check for one that never joined.
Violation CheckClient(FleetSimulation& fleet, int64_t i, PastOf past);

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_BOOKS_H_
