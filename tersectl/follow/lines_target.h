// The news of runs as lines of JSON, for programs that read them from a pipe.
#ifndef TERSE_TERSECTL_FOLLOW_LINES_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_LINES_TARGET_H_

#include <memory>

#include "tersectl/commands.h"
#include "tersectl/follow/target.h"

namespace terse {

// Prints an object a line, each with "type", "run" and "lineage":
//
//   run    with "status" (terse.v1.Status), before all others of a run
//   round  with "round" (terse.v1.Round) and "scalars" (tersectl/round_scalars.h), for every settled round
//   event  with "event" (terse.v1.Event)
//   end    with "state" and "reason" (RunEnd)
//
// It remembers nothing: each time it begins with the run's first round and event.
std::unique_ptr<FollowTarget> MakeLinesTarget(const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_LINES_TARGET_H_
