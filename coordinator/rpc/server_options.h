// The options of whoever serves clients: coordinators and relays.
#ifndef TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_
#define TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_

namespace CLI {
class App;
}  // namespace CLI

namespace terse {

struct CoordinatorOptions;

// Adds addresses, certificates, bounds of connections and of what clients may use, and the files that tell of them.
void AddServingOptions(CLI::App& app, CoordinatorOptions* options);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_SERVER_OPTIONS_H_
