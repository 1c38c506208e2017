#include "tersectl/follow/stop_signal.h"

#include "absl/time/clock.h"

namespace terse {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(2);

}  // namespace

void StopSignal::Set() {
  absl::MutexLock lock(&mutex_);
  if (notification_.HasBeenNotified()) return;
  set_ = absl::Now();
  notification_.Notify();
  for (AdminClient* client : clients_) client->Cancel();
}

bool StopSignal::IsOverdue() const {
  absl::MutexLock lock(&mutex_);
  return absl::Now() - set_ >= kGrace;
}

StopSignal::Cancels::Cancels(StopSignal* stop, AdminClient* client) : stop_(stop), client_(client) {
  absl::MutexLock lock(&stop_->mutex_);
  stop_->clients_.insert(client_);
  if (stop_->notification_.HasBeenNotified()) client_->Cancel();
}

StopSignal::Cancels::~Cancels() {
  absl::MutexLock lock(&stop_->mutex_);
  stop_->clients_.erase(client_);
}

}  // namespace terse
