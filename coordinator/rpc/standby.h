// A coordinator answers with this service while another one serves the runs of their store.
#ifndef TERSE_COORDINATOR_RPC_STANDBY_H_
#define TERSE_COORDINATOR_RPC_STANDBY_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/generic/async_generic_service.h"

namespace terse {

// Ends every call with UNAVAILABLE and the name of the one that serves: clients go on to their next address, and
// `tersectl` shows it. Thread-safe.
class StandbyService final : public grpc::CallbackGenericService {
 public:
  void SetHolder(const std::string& holder) ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::string holder_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_STANDBY_H_
