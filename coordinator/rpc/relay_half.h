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
  // The relay's own name, among the clients of the coordinator above.
  virtual const std::string& name() const = 0;
  // Reads this half's stored state. Called before the runs in `runs` are opened, when no other process can change it.
  virtual absl::Status ReadState(RunStores& runs) = 0;
  // Gives every run the parts that a relay's run has.
  virtual RelayHosting hosting() = 0;
  // Starts the link to the coordinator above. Called once the addresses are served. It may end the process.
  virtual void Begin(RunRegistry* runs, CoordinatorEnding* ending) = 0;
  virtual void End() = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RELAY_HALF_H_
