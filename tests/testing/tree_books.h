// The books of a whole tree of coordinator, relays and clients, from what its stopped processes have on their disks
// (docs/PROTOCOL.md, "Relays").
#ifndef TERSE_TESTS_TESTING_TREE_BOOKS_H_
#define TERSE_TESTS_TESTING_TREE_BOOKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compression/codec.h"
#include "core/id128.h"
#include "storage/client_state.h"
#include "storage/run_store.h"

namespace terse {

// The equation that holds bit for bit, whoever died and whoever moved:
//
//   updates of relays that the root applied + what the relays hold back
//     == mean over each relay's rounds of (deltas of its clients - what these hold back)
//
// AddHeldBack says what a process holds back (conservation.h). It needs clients of tests/testing/grid_trainer.h,
// relays whose rounds all have the same number of updates, a power of two so that means are exact, and the root's whole
// log, in mode forward or with the updates beside it. Relays that forward have sent, and hold back, bundles in place of
// means. Not thread-safe.
//
// The root is added first, then every relay, then every client. A process whose state directory was taken away counts
// with both, the old directory and the new one.
class TreeBooks {
 public:
  // `codec` must outlive it. `relays_forward`: all of them do.
  TreeBooks(const Codec& codec, int updates_a_round, bool relays_forward = false);

  // `store` is that of the run in `run_directory`. Statuses of RunStore; INTERNAL for a log that is not as above.
  absl::Status AddRoot(RunStore* store, const std::string& run_directory);
  // The relay's run, which nobody has open, and the state of its client half. Either may be missing: the relay never
  // got that far then. INTERNAL for a round with another number of updates; otherwise statuses of ClientState,
  // SqliteDb.
  absl::Status AddRelay(const std::string& run_directory, const std::string& state_directory);
  // A client whose deltas are those of GridDelta(grid_client, ...). Statuses of ClientState.
  absl::Status AddClient(const std::string& state_directory, int64_t grid_client);

  // Left side - right side, element by element; all zero when nothing is lost and nothing counts twice.
  const std::vector<double>& difference() const { return difference_; }
  // Applied updates of all processes that are applied more than once.
  int64_t doubled() const;

 private:
  // Adds what the client half of a relay that forwards holds back.
  absl::Status AddBundles(const StoredState& state);
  bool IsApplied(Id128 update_id) const { return applied_.count(update_id) > 0; }
  // Counts the updates of the rounds of a run that are COMMITTED, or CLOSED and not after `newest_sealed`.
  absl::Status ReadApplied(const std::string& run_directory, int64_t newest_sealed, bool is_relay);

  const Codec& codec_;
  const int updates_a_round_;
  const bool relays_forward_;
  std::vector<double> difference_;
  std::map<Id128, int64_t> applied_;  // how often
};

}  // namespace terse

#endif  // TERSE_TESTS_TESTING_TREE_BOOKS_H_
