// Follows the runs of a coordinator for one place (follow/target.h).
#ifndef TERSE_TERSECTL_FOLLOW_FOLLOWER_H_
#define TERSE_TERSECTL_FOLLOW_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tersectl/admin_client.h"
#include "tersectl/follow/target.h"

namespace terse {

// Asks the coordinator twice a second for the news of each run that goes on. There is no queue: what a place has not
// taken yet is asked for later, since the coordinator keeps its rounds and events. A place that fails is tried again
// after half a second, and then after twice the time before, up to a minute, for each run on its own. So is a run that
// the coordinator cannot read, as while its disk is in trouble. Not thread-safe.
class Follower {
 public:
  // Gets a line for people about this place: one when trouble with a run begins, and one when it is over.
  using Remark = std::function<void(const std::string& line)>;

  // `run`: empty for all runs of the coordinator, also new ones. The pointers must outlive the follower.
  Follower(AdminClient* client, std::string run, FollowTarget* target, Remark remark, const absl::Notification* stop)
      : client_(client), only_(std::move(run)), target_(target), remark_(std::move(remark)), stop_(stop) {}

  // Follows until the one run has ended or is gone and its news have arrived, or until a call of the coordinator fails:
  // returns its status, and goes on when it is called again. `heard` is called whenever the coordinator answers.
  // NOT_FOUND when there never was such a run. DEADLINE_EXCEEDED, with the place's trouble, when the news have not
  // arrived `patience` after the run's end. CANCELLED soon after somebody has notified `stop`.
  absl::Status Follow(absl::Duration patience, absl::FunctionRef<void()> heard);

 private:
  struct Trouble {
    absl::Status status;  // OK when there is none
    absl::Duration wait = absl::ZeroDuration();
    absl::Time retry = absl::InfinitePast();
  };
  struct Followed {
    std::string name;
    std::string lineage;
    bool is_new = false;                  // it came while this process followed
    std::unique_ptr<RunTracker> tracker;  // null: the place has not begun with it yet
    absl::optional<uint64_t> rounds;      // the last one that was taken; nullopt: it takes none
    absl::optional<uint64_t> events;      // likewise, or kOnlyNewEvents
    bool has_pending = false;             // what was taken has not arrived
    bool end_taken = false;               // nothing more will be taken
    bool is_done = false;                 // all has arrived
    absl::Time ended = absl::InfiniteFuture();
    Trouble place;   // the place does not take this run's news
    Trouble source;  // the coordinator does not give them
  };

  // Ends the runs that an earlier process followed and that the coordinator no longer has.
  void LookForEarlier(const v1::RunsReply& reply);
  absl::Status LookAtRuns(absl::FunctionRef<void()> heard);
  absl::Status LookAt(const v1::Run& run, Followed* followed);
  // Notes an error that concerns this run alone, and returns OK for it.
  absl::Status PassOver(const absl::Status& looked, Followed* followed);
  // Makes the tracker; leaves it null when the place is in trouble.
  absl::Status Begin(Followed* followed);
  // Takes and delivers page by page until there is no more, or the place is in trouble.
  absl::Status Advance(bool has_ended, Followed* followed);
  // These take the next page and return whether there may be more.
  absl::StatusOr<bool> TakeRounds(Followed* followed);
  absl::StatusOr<bool> TakeEvents(Followed* followed);
  // Returns whether what was taken has arrived; where not, the place is left alone for a while.
  bool Deliver(Followed* followed);
  // Says what is new about `trouble`, which `subject` has, and when it is to be tried again.
  void Note(const absl::Status& status, const std::string& subject, Trouble* trouble);
  // The coordinator has the run no more.
  void Retire(Followed followed);
  // Whether the one run is over; DEADLINE_EXCEEDED as Follow.
  absl::StatusOr<bool> IsOver(absl::Duration patience) const;

  AdminClient* const client_;
  const std::string only_;
  FollowTarget* const target_;
  const Remark remark_;
  const absl::Notification* const stop_;
  bool has_looked_ = false;
  bool has_found_earlier_ = false;
  Trouble earlier_;  // the place does not say what it has of them
  std::map<std::string, Followed> runs_;
  std::vector<Followed> gone_;  // runs whose last news have not arrived
};

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_FOLLOWER_H_
