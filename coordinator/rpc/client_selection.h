// The page of a run's clients that a request asks for: filtered, sorted, counted.
#ifndef TERSE_COORDINATOR_RPC_CLIENT_SELECTION_H_
#define TERSE_COORDINATOR_RPC_CLIENT_SELECTION_H_

#include "absl/status/status.h"
#include "coordinator/rpc/run_host.h"
#include "terse/v1/admin.pb.h"

namespace terse {

// Adds every client that ever checked in, with what its connection and the ledger say of it, and the head's version.
// Statuses of the store.
absl::Status AddClients(const RunHost::Live& live, v1::ClientsReply* out);

// Leaves of all clients those that the request asks for, in its order, and adds the counts. INVALID_ARGUMENT for a
// column that there is none of. Costs O(clients), and sorts no more of them than the request leaves.
absl::Status SelectClients(const v1::ClientsRequest& request, v1::ClientsReply* reply);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_CLIENT_SELECTION_H_
