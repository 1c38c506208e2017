// The options of whoever serves clients: coordinators and relays.
#ifndef TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_
#define TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}  // namespace CLI

namespace terse {

struct CoordinatorOptions;

// Adds --store and --lease. `who` has the lease, a "coordinator" or a "relay", and `what` is kept: "the runs".
void AddStoreOptions(CLI::App& app, absl::string_view who, absl::string_view what, CoordinatorOptions* options);

// Adds addresses, certificates, bounds of connections and of what clients may use, and the files that tell of them.
void AddServingOptions(CLI::App& app, CoordinatorOptions* options);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_
