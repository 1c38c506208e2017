// Counts of what happened in schedules of a simulation, added up.
#ifndef TERSE_TESTS_SIMULATION_TOTALS_H_
#define TERSE_TESTS_SIMULATION_TOTALS_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/fault.h"

namespace terse {

struct Totals {
  int64_t schedules = 0;
  int64_t rounds_committed = 0;
  int64_t rounds_aborted = 0;
  int64_t updates_applied = 0;
  int64_t updates_not_applied = 0;
  int64_t updates_packed = 0;  // that came so, and were read
  int64_t resets = 0;
  int64_t coordinator_kills = 0;
  int64_t client_kills = 0;
  int64_t power_losses = 0;
  int64_t disk_faults = 0;
  int64_t orderly_stops = 0;
  int64_t cuts = 0;
  int64_t partitions = 0;
  int64_t duplicates = 0;
  int64_t clock_jumps = 0;
  int64_t rollbacks = 0;
  int64_t operator_acts = 0;
  int64_t lost = 0;                                             // schedules in which an update was lost
  int64_t doubled = 0;                                          // or counted twice
  std::array<int64_t, std::size(kFailpoints)> failpoints = {};  // how often each was met

  void Add(const Totals& other);
};

// Every figure but the failpoints', with the name that reports use.
std::vector<std::pair<absl::string_view, int64_t>> FiguresOf(const Totals& totals);

// {"schedules": 12, ..., "failpoints": {...}}
std::string ToJson(const Totals& totals);

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_TOTALS_H_
