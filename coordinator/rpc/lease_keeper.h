// One of several coordinators on a store serves its runs, and the others wait.
#ifndef TERSE_COORDINATOR_RPC_LEASE_KEEPER_H_
#define TERSE_COORDINATOR_RPC_LEASE_KEEPER_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "storage/store_lease.h"

namespace terse {

// Waits until this process has the lease. `sleep` waits for a while and returns false when the process is to end;
// `on_wait` hears of each other holder that is waited for. A store that cannot be reached is waited for, too. CANCELLED
// when the process is to end; otherwise as StoreLease::Take.
absl::Status AwaitLease(StoreLease& lease, absl::FunctionRef<bool(absl::Duration)> sleep,
                        absl::FunctionRef<void(const std::string& holder)> on_wait);

// Renews a lease that this process has, in a thread of its own, and gives it back at the end.
class LeaseKeeper {
 public:
  // Calls `on_lost` once, in that thread, when another one has it. `lease` must outlive this and is used by nobody
  // else.
  LeaseKeeper(StoreLease* lease, std::function<void(const absl::Status&)> on_lost);
  ~LeaseKeeper() ABSL_LOCKS_EXCLUDED(mutex_);
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  StoreLease* const lease_;
  const std::function<void(const absl::Status&)> on_lost_;
  absl::Mutex mutex_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_LEASE_KEEPER_H_
