// A simulated run, drawn anew for every schedule.
#ifndef TERSE_TESTS_SIMULATION_SCENARIO_H_
#define TERSE_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>

#include "core/random.h"
#include "core/run_config.h"

namespace terse {

struct Scenario {
  RunConfig config;
  int64_t clients = 0;       // processes that want to join; the last may not be on the list
  bool rollbacks = false;    // clients' disks may go back in time
  bool make_start = false;   // clients make version 0 by themselves
  bool starts_up = true;     // faults begin once everything runs, not before the store is made
  int64_t history_room = 0;  // for so many clients' histories; 0: as much as they need
  bool small_parts = false;  // who catches up gets the log message by message
  int64_t most_log = 0;      // bytes of the log that one client is sent; 0: any
  double clock_step = 0;     // seconds that pass between two looks at the clock
  int64_t faithful = 0;      // clients that are there to the end: the others stay away when the faults stop
};

Scenario DrawScenario(Random* random);

}  // namespace terse

#endif  // TERSE_TESTS_SIMULATION_SCENARIO_H_
