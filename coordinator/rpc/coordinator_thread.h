// A coordinator inside another program: the benchmarks' and the tests'.
#ifndef TERSE_COORDINATOR_RPC_COORDINATOR_THREAD_H_
#define TERSE_COORDINATOR_RPC_COORDINATOR_THREAD_H_

#include <thread>

#include "absl/synchronization/notification.h"
#include "coordinator/rpc/server.h"

namespace terse {

// Serves in a thread from its construction, which returns once the addresses are served or it is known that they will
// not be, to its end.
class CoordinatorThread {
 public:
  CoordinatorThread(const CoordinatorOptions& options, RunLearningFactory make_learning);
  ~CoordinatorThread() { Stop().IgnoreError(); }

  // Empty when it could not start; Stop says why.
  const CoordinatorAddresses& addresses() const { return addresses_; }

  // Ends it in order. The status of ServeRuns.
  absl::Status Stop();

 private:
  CoordinatorEnding ending_;
  CoordinatorAddresses addresses_;
  absl::Notification ready_;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_COORDINATOR_THREAD_H_
