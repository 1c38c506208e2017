// Many schedules, on several threads, until one violates an invariant.
#ifndef TERSE_TESTS_SIMULATION_SEARCH_H_
#define TERSE_TESTS_SIMULATION_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/types/optional.h"
#include "core/fault.h"
#include "tests/simulation/books.h"
#include "tests/simulation/totals.h"

namespace terse {

struct SearchOptions {
  uint64_t first_seed = 1;
  int64_t schedules = 1000;
  int threads = 2;
  Mutant mutant = Mutant::kNone;
  double minutes = 0;  // ends earlier when they are over; 0: no limit
  bool print = false;  // a line for everything that happens
  // Called from any of the threads, one at a time, after every schedule.
  std::function<void(const Totals&)> on_progress;
};

struct SearchResult {
  Totals totals;
  absl::optional<uint64_t> seed;  // of the violation, the lowest that was found
  Violation violation;
};

// The mutant is switched on for the whole process meanwhile, so one search at a time.
SearchResult Search(const SearchOptions& options);

// Returns the command that repeats a schedule.
std::string CommandFor(uint64_t seed, Mutant mutant);

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_SEARCH_H_
