// The plans that make a real process come by each failpoint of core/fault.h: what it needs around it.
#ifndef TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_
#define TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/faults/fleet_settings.h"

namespace terse {

enum class Side { kCoordinator, kClient };
inline constexpr Side kSides[] = {Side::kCoordinator, Side::kClient};
absl::string_view SideName(Side side);  // "coordinator", "client"

// The treatment of the rest of the fleet while a process is to come by its failpoint.
enum class Provocation {
  kNone,          // rounds go on, which is enough
  kStall,         // the clients stand still, again and again, until a round's deadline has passed
  kRestartPeers,  // processes of the other side are killed, so that sessions begin anew
  kLoseModel,     // the client's cached model is taken away
  kLoseState,     // the client finds an empty state directory where it had one
};

struct FailpointPlan {
  absl::string_view name;  // row of kFailpoints
  Side side = Side::kCoordinator;
  int most_passes = 8;  // it is worth waiting for so many passes of one process, at most
  Provocation provocation = Provocation::kNone;
  FleetTrait trait = FleetTrait::kNone;  // only such fleets come by
};

// One row per failpoint and side on which it is, in kFailpoints' order.
absl::Span<const FailpointPlan> FailpointPlans();

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_
