// The limits that end a run before its last round. Pure functions of their arguments.
#ifndef TERSE_COORDINATOR_LIMITS_H_
#define TERSE_COORDINATOR_LIMITS_H_

#include <cstdint>
#include <string>

#include "core/run_config.h"
#include "core/trainer.h"

namespace terse {

// Returns when a run that was created at `created_us` has used its time, in microseconds of the same clock; the largest
// number for never.
int64_t TimeLimitMicros(const RunLimits& limits, int64_t created_us);

// Return why the run is over, one line for people; empty while it is not.
std::string TimeIsUp(const RunLimits& limits, int64_t created_us, int64_t now_us);
std::string IterationsDone(const RunLimits& limits, int64_t iterations);
std::string TargetReached(const RunLimits& limits, int64_t round, const Evaluation& evaluation);

}  // namespace terse

#endif  // TERSE_COORDINATOR_LIMITS_H_
