// The half of a relay's process that is a client of the coordinator above, as the half that serves clients sees it.
// relay/ implements it.
#ifndef TERSE_COORDINATOR_RPC_RELAY_HALF_H_
#define TERSE_COORDINATOR_RPC_RELAY_HALF_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/upstream.h"

namespace terse {

class CoordinatorEnding;
class RunRegistry;
class RunStores;

class RelayHalf {
 public:
  virtual ~RelayHalf() = default;
  // Of the relay, among the clients above.
  virtual const std::string& name() const = 0;
  // Reads the state of this half, once nobody else can change it and before the runs are opened. `runs` are those that
  // will be.
  virtual absl::Status ReadState(RunStores& runs) = 0;
  // Makes the runs a relay's.
  virtual RelayHosting hosting() = 0;
  // Begins once the addresses are served, and ends before the runs do. It may decide the end of the process.
  virtual void Begin(RunRegistry* runs, CoordinatorEnding* ending) = 0;
  virtual void End() = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RELAY_HALF_H_
