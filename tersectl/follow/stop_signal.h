// Ends what the targets of one `tersectl follow` are doing.
#ifndef TERSE_TERSECTL_FOLLOW_STOP_SIGNAL_H_
#define TERSE_TERSECTL_FOLLOW_STOP_SIGNAL_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tersectl/admin_client.h"

namespace terse {

// Set once, by the first target whose error ends the command. Calls of the coordinator that are under way then end at
// once, as they only read; requests to the targets' servers have two seconds more, since one that is given up may have
// arrived and is made again by the next process. Thread-safe.
class StopSignal {
 public:
  void Set();
  const absl::Notification* notification() const { return &notification_; }
  // Whether requests to the targets' servers are to be given up.
  bool IsOverdue() const;

  // Cancels the client's calls when the signal is set, while this object lives. The client must outlive it.
  class Cancels {
   public:
    Cancels(StopSignal* stop, AdminClient* client);
    ~Cancels();
    Cancels(const Cancels&) = delete;
    Cancels& operator=(const Cancels&) = delete;

   private:
    StopSignal* const stop_;
    AdminClient* const client_;
  };

 private:
  mutable absl::Mutex mutex_;
  absl::Time set_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::set<AdminClient*> clients_ ABSL_GUARDED_BY(mutex_);
  absl::Notification notification_;
};

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_STOP_SIGNAL_H_
