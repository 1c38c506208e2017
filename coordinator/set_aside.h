// Clients that fail again and again get no work for a while.
#ifndef TERSE_COORDINATOR_SET_ASIDE_H_
#define TERSE_COORDINATOR_SET_ASIDE_H_

#include <string>

#include "absl/status/status.h"
#include "coordinator/engine_state.h"

namespace terse {

// Counts a failure of the client, connected or not, and sets it aside when that is one too many in a row. A status
// other than OK is a failure of the store, here and below.
absl::Status RecordFailure(EngineState& run, int64_t client, const std::string& reason);

// Sets the client aside until then (Unix time), or readmits it (0). No effect for a client that was never registered.
absl::Status SetAside(EngineState& run, int64_t client, int64_t until_us, const std::string& reason);

// Readmits the connected clients whose time is over.
absl::Status ReadmitDue(EngineState& run);

}  // namespace terse

#endif  // TERSE_COORDINATOR_SET_ASIDE_H_
