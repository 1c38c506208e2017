// The plans that make a real process come by each failpoint of core/fault.h: what it needs around it.
#ifndef TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_
#define TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/faults/fleet_settings.h"

namespace terse {

enum class Side { kCoordinator, kRelay, kClient };
inline constexpr Side kSides[] = {Side::kCoordinator, Side::kRelay, Side::kClient};
absl::string_view SideName(Side side);  // "coordinator", "relay", "client"

// The treatment of the rest of the fleet while a process is to come by its failpoint.
enum class Provocation {
  kNone,          // rounds go on, which is enough
  kStall,         // those below it stand still, again and again, until a round's deadline has passed
  kRestartPeers,  // processes above or below it are killed, so that sessions begin anew
  kLoseModel,     // the client's cached model is taken away, or that of a relay's client half
  kLoseState,     // the process finds an empty state directory where it had one
  kLeaveClosed,   // a relay dies before that, with a round that is CLOSED
  kMove,          // relays are killed and stay away for a while, so that their clients move
};

struct FailpointPlan {
  absl::string_view name;  // row of kFailpoints
  Side side = Side::kCoordinator;
  int most_passes = 8;  // it is worth waiting for so many passes of one process, at most
  Provocation provocation = Provocation::kNone;
  FleetTrait trait = FleetTrait::kNone;  // only such fleets come by
};

// Whether fleets of that topology come by the failpoint on that side.
bool ComesBy(const FailpointPlan& plan, Topology topology);

// One row per failpoint and side on which it is, in kFailpoints' order.
absl::Span<const FailpointPlan> FailpointPlans();

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_FAILPOINT_PLAN_H_
