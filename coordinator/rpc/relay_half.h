// The half of a relay's process that is a client of the coordinator above, as the half that serves clients sees it.
// relay/ implements it.
#ifndef TERSE_COORDINATOR_RPC_RELAY_HALF_H_
#define TERSE_COORDINATOR_RPC_RELAY_HALF_H_

#include "coordinator/upstream.h"

namespace terse {

class CoordinatorEnding;
class RunRegistry;

class RelayHalf {
 public:
  virtual ~RelayHalf() = default;
  // Makes the runs a relay's.
  virtual RelayHosting hosting() = 0;
  // Begins once the addresses are served, and ends before the runs do. It may decide the end of the process.
  virtual void Begin(RunRegistry* runs, CoordinatorEnding* ending) = 0;
  virtual void End() = 0;
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RELAY_HALF_H_
