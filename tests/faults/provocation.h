// The treatment of the rest of a fleet while some of its processes are to die at their failpoints.
#ifndef TERSE_TESTS_FAULTS_PROVOCATION_H_
#define TERSE_TESTS_FAULTS_PROVOCATION_H_

#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/random.h"
#include "tests/faults/failpoint_plan.h"
#include "tests/faults/fleet.h"

namespace terse {

// A member that is to die at a failpoint.
struct Shot {
  int member = 0;
  const FailpointPlan* plan = nullptr;
  int pass = 1;
};

// Kills and stops those who are not to die at a failpoint of their own. Whoever is dead comes back with Revive. Not
// thread-safe.
class Provoker {
 public:
  // Both must outlive it.
  Provoker(FaultyFleet* fleet, Random* random) : fleet_(fleet), random_(random) {}

  // Does what the shots that have not hit yet need around them. Again and again: some of it comes and goes.
  absl::Status Provoke(absl::Span<const Shot> shots);
  // The time for which to leave the fleet alone then; it is twice as long after each, so that a slow machine gets
  // somewhere in between.
  absl::Duration NextPause();
  // Lets all processes that stand still go on, and begins the pauses anew.
  void Calm();

  // Starts the dead, but for those that are held.
  void Revive();
  // Keeps a member dead until then.
  void Hold(int member, absl::Time until) { held_[member] = until; }

  // Where clients move, those that have moved die and go to their own relays again: such a client would stay where it
  // is until that relay dies, and a relay that lacks clients has no rounds.
  absl::Status GatherClients();

 private:
  absl::Status ProvokeOne(const Shot& shot);
  absl::Status KillUnlessArmed(int member);
  int OneOf(Side side);
  // A process with which the member has a session.
  int PeerOf(const Shot& shot);
  // Stops processes where one of the shots wants that.
  bool StallFor(absl::Span<const Shot> shots);
  void Resume();

  FaultyFleet* const fleet_;
  Random* const random_;
  absl::Duration pause_;
  bool stalled_ = false;
  std::map<int, absl::Time> held_;
};

}  // namespace terse

#endif  // TERSE_TESTS_FAULTS_PROVOCATION_H_
