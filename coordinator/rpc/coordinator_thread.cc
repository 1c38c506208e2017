#include "coordinator/rpc/coordinator_thread.h"

#include <utility>

namespace terse {

CoordinatorThread::CoordinatorThread(const CoordinatorOptions& options, RunLearningFactory make_learning)
    : thread_([this, options, make_learning = std::move(make_learning)] {
        status_ = ServeRuns(options, make_learning, &ending_, [this](const CoordinatorAddresses& addresses) {
          addresses_ = addresses;
          ready_.Notify();
        });
        if (!ready_.HasBeenNotified()) ready_.Notify();
      }) {
  ready_.WaitForNotification();
}

absl::Status CoordinatorThread::Stop() {
  ending_.Decide(absl::OkStatus());
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace terse
