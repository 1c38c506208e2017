// The seam between the runs that `tersectl follow` looks at and the places that it hands their news to. A kind of place
// is one file pair and one row of follow/target_table.cc.
#ifndef TERSE_TERSECTL_FOLLOW_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_TARGET_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// How a run ended for those who follow it.
struct RunEnd {
  std::string state;   // "finished" or "stopped" (Run.state), or "deleted": the coordinator has it no more
  std::string reason;  // one line for people
};

// The answer of RunTracker::EventsAfter that leaves out all events that are there already.
inline constexpr uint64_t kOnlyNewEvents = std::numeric_limits<uint64_t>::max();

// Hands the news of one run to one place. Used from one thread.
//
// The Take methods only remember, and the next Deliver hands on what was taken; the follower takes no more until that
// has succeeded, so what waits is bounded by one page of the coordinator's answers (follow/follower.h). After a failure
// Deliver is called again with the same news.
class RunTracker {
 public:
  virtual ~RunTracker() = default;

  // Whether nothing of the run is left to be told, as after an earlier process that saw its end.
  virtual bool IsComplete() const { return false; }
  // The id of the round after which TakeRound is to get the run's rounds, asked once: 0 where totals are sums over all
  // of them; nullopt: none at all.
  virtual absl::optional<uint64_t> RoundsAfter() const { return absl::nullopt; }
  // The id of the event after which TakeEvent is to get the run's events, asked once; kOnlyNewEvents: of those that
  // happen from now on, upon which SkipEventsTo tells the newest id that there was; nullopt: none at all.
  virtual absl::optional<uint64_t> EventsAfter() const { return absl::nullopt; }
  virtual void SkipEventsTo(uint64_t id) {}

  // So many clients of each round, the slowest ones, are handed over with their times in TakeRound's `traces`.
  virtual uint32_t TracedClients() const { return 0; }

  // Every settled round after that once, with all its figures, in the order of the ids: from the run's first on also
  // those that an earlier process has delivered.
  virtual void TakeRound(const v1::Round& round, const v1::TracesReply& traces) {}
  virtual void TakeEvent(const v1::Event& event) {}
  // The run at this moment, at each look at the coordinator, before its rounds and events.
  virtual void TakeRun(const v1::Run& run, absl::Time now) {}
  // The last news.
  virtual void TakeEnd(const RunEnd& end) {}

  // OK when everything that was taken has arrived.
  virtual absl::Status Deliver() = 0;
};

// A run that an earlier process followed, whose end the place has not heard of.
struct EarlierRun {
  std::string name;
  std::string lineage;  // in hexadecimal digits
  std::unique_ptr<RunTracker> tracker;
};

// A place that follows runs. Used from one thread.
class FollowTarget {
 public:
  virtual ~FollowTarget() = default;
  // For lines to people. Has no secret in it.
  virtual std::string name() const = 0;
  // Begins with a run, or finds where an earlier process stopped. `is_new`: the run was not there yet when this process
  // began. Statuses of the place, upon which the follower tries again.
  virtual absl::StatusOr<std::unique_ptr<RunTracker>> Begin(const v1::Status& run, bool is_new) = 0;
  // The runs of this coordinator that an earlier process followed to no end, but for those with a lineage in `served`,
  // which the coordinator has: the others were deleted while no process followed them. Asked once, and again after a
  // failure. None where the place does not show whether a run goes on.
  virtual absl::StatusOr<std::vector<EarlierRun>> FindEarlier(const std::set<std::string>& served) {
    return std::vector<EarlierRun>();
  }
};

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_TARGET_H_
