// The books of a fleet of the kill campaign: whether what its stopped processes have on their disks keeps the
// invariants of docs/PROTOCOL.md, "Exactly once" and "Relays". The engines' own bookkeeping is compared with the log of
// downstream messages and with deltas that are computed here again.
#ifndef TERSE_TESTS_FAULTS_FLEET_BOOKS_H_
#define TERSE_TESTS_FAULTS_FLEET_BOOKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/faults/fleet.h"

namespace terse {

struct Findings {
  int64_t rounds = 0;                 // committed so far
  int64_t lost = 0;                   // updates that their client has settled as applied and that are not in the model
  int64_t doubled = 0;                // updates that are in the model more than once
  std::vector<std::string> problems;  // one line per violation; empty when all invariants hold
};

// Not thread-safe.
class FleetBooks {
 public:
  virtual ~FleetBooks() = default;

  // Takes a dead member's state directory away, on purpose: what is lost with it counts as no violation. May kill
  // others.
  virtual absl::Status TakeState(int member) = 0;

  // Opens the state directories of the stopped fleet, as a restart would, and checks
  //   I1, I2  applied updates + residuals == sum of sealed deltas; no update is applied twice; the ledger of applied
  //           updates and the head moved together; no residual was given up but those that were taken away on purpose,
  //   I3      the whole log replays from version 0 to every recorded hash, and the newest checkpoint is whole,
  //   I4      nobody sent bad input, so none was refused.
  virtual Findings Check() = 0;
};

// `fleet` must outlive the books.
std::unique_ptr<FleetBooks> MakeFleetBooks(FaultyFleet* fleet);
// The books of a coordinator and its clients: each client by itself.
std::unique_ptr<FleetBooks> MakeFlatBooks(FaultyFleet* fleet);
// The books of a whole tree together (tests/testing/tree_books.h).
std::unique_ptr<FleetBooks> MakeTreeBooks(FaultyFleet* fleet);

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FLEET_BOOKS_H_
