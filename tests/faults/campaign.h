// The kill campaign: fleets of real processes that lose their coordinator, relays and clients by SIGKILL, at every
// failpoint and at random times, and whose stored state is checked against invariants I1 to I5 of docs/PROTOCOL.md
// after every few deaths.
#ifndef TERSE_TESTS_FAULTS_CAMPAIGN_H_
#define TERSE_TESTS_FAULTS_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/faults/failpoint_plan.h"
#include "tests/faults/fleet.h"

namespace terse {

// The record of what one fleet lived through.
struct FleetResult {
  uint64_t seed = 0;
  std::string settings;
  std::map<Side, KillCounts> kills;
  // Failpoints that a process of that side was told to die at and did not come by in time.
  std::map<Side, KillCounts> missed;
  // Milliseconds from the new start of a process to the commit of the next round (coordinator), or of the next update
  // of its own (relay, client), while nothing else is killed.
  std::map<Side, std::vector<double>> recovery_ms;
  int64_t rounds = 0;  // committed
  int64_t checks = 0;  // of the stored state
  int64_t lost = 0;
  int64_t doubled = 0;
  std::vector<std::string> problems;  // violations; empty: none

  int64_t KillsOf(Side side) const;
};

struct FleetOptions {
  std::string bin;        // directory of grid-coordinator, grid-relay and grid-client
  std::string mutant;     // TERSE_MUTANT of the processes; empty: none
  std::string directory;  // exists and is empty
  std::string address;    // of loopback, that no other fleet has
  Topology topology = Topology::kFlat;
  uint64_t seed = 0;  // decides settings, order of failpoints and times; the processes' own timing differs each time
  // Each tree takes its turn of the failpoints alone, so that one fleet of each kind goes through all of them.
  bool takes_turns = false;
};

// Runs one fleet until a process of the right side was told to die once at every failpoint that its settings have, or
// `stopping` says so between two blows; ends with a check. The first violation ends it too, with its processes dead and
// the state as it was.
FleetResult RunFleet(const FleetOptions& options, const std::function<bool()>& stopping);

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_CAMPAIGN_H_
