// Ends a call whose peer does not read.
#ifndef TERSE_COORDINATOR_RPC_WRITE_WATCH_H_
#define TERSE_COORDINATOR_RPC_WRITE_WATCH_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/metered_peer.h"
#include "core/log/log.h"
#include "grpcpp/grpcpp.h"

namespace terse {

// A write is done when the peer's stream has room for it. A peer that answers pings but reads nothing would hold the
// write, and what waits behind it, for ever: after `patience` its call is cancelled. A look at the clock in that time
// is all that this costs, however many writes there are. Thread-safe; make it with std::make_shared.
class WriteWatch : public std::enable_shared_from_this<WriteWatch> {
 public:
  // A call that has nothing more to say than why it ends is ended after a tenth of its patience.
  static constexpr int kHurry = 10;

  WriteWatch(grpc::CallbackServerContext* call, absl::Duration patience) : patience_(patience), call_(call) {}

  // A write began, and is done.
  void Began() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_ = absl::Now();
    writing_ = true;
    if (!std::exchange(looking_, true)) LookIn(patience_);
  }
  void Done() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
  // Gives the present write a tenth of the patience from here on.
  void Hurry() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    since_ = absl::Now();
    patience_ = patience_ / kHurry;
    alarm_.EndWait();
  }
  // Ends the call now, because of `why`, which completes the sentence "ending a call from PEER, ..." of the log.
  void EndNow(absl::string_view why) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (call_ != nullptr) End(why);
  }
  // Forgets the call. Must be called before gRPC lets go of it.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    call_ = nullptr;
    alarm_.EndWait();
  }

 private:
  void LookIn(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    alarm_.Then(
        wait, [self = shared_from_this()] { self->Look(); }, wait);
  }

  void Look() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    looking_ = writing_ && call_ != nullptr;
    if (!looking_) return;
    const absl::Duration left = since_ + patience_ - absl::Now();
    if (left > absl::ZeroDuration()) return LookIn(left);
    looking_ = false;
    End("which leaves what it is sent unread");
  }
  void End(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Log(LogLevel::kWarn, kSessionLog, {}, absl::StrCat("ending a call from ", call_->peer(), ", ", why));
    call_->TryCancel();
  }

  SlowDown alarm_;  // one wait at a time: while looking_
  absl::Mutex mutex_;
  absl::Duration patience_ ABSL_GUARDED_BY(mutex_);
  grpc::CallbackServerContext* call_ ABSL_GUARDED_BY(mutex_);  // nullptr once it ends
  absl::Time since_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_WRITE_WATCH_H_
