// The invariants of docs/PROTOCOL.md, "Exactly once", on what a stopped fleet left on disk. The engines' own
// bookkeeping is compared with the log of downstream messages and with deltas that are computed here again.
#ifndef TERSE_TESTS_FAULTS_STORED_STATE_H_
#define TERSE_TESTS_FAULTS_STORED_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tests/faults/fleet_settings.h"
#include "tests/testing/conservation.h"

namespace terse {

// A client of the stopped fleet.
struct StoredClient {
  std::string name;
  std::string state_directory;
  Baseline baseline;            // where its books start: moved when its state was taken away on purpose
  int64_t expected_resets = 0;  // residuals that were counted as lost up to the last check
  bool may_reset = false;       // its state was taken away since then
};

struct Findings {
  int64_t rounds = 0;                 // committed so far
  int64_t lost = 0;                   // updates that their client has settled as applied and that are not in the model
  int64_t doubled = 0;                // updates that are in the model more than once
  std::vector<std::string> problems;  // one line per violation; empty when all invariants hold
};

// Opens both sides' state directories, as a restart would, and checks
//   I1, I2  per client, sum of committed updates + residual == sum of sealed deltas; no update is in the log twice; the
//           ledger of applied updates and the head moved together; no residual was given up but those that were taken
//           away on purpose,
//   I3      the whole log replays from version 0 to every recorded hash, and the newest checkpoint is whole,
//   I4      nobody sent bad input, so none was refused.
// Moves `expected_resets` and `may_reset` on.
Findings CheckStoredState(const std::string& run_directory, const FleetSettings& settings,
                          absl::Span<StoredClient> clients);

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_STORED_STATE_H_
