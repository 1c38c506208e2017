// The servers of a load: the coordinator, and the relays between it and the clients where there are some.
#ifndef TERSE_BENCH_FLEET_LOADED_TREE_H_
#define TERSE_BENCH_FLEET_LOADED_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/fleet/load_run.h"
#include "bench/fleet/loaded_server.h"
#include "tersectl/admin_client.h"

namespace terse {

// Not thread-safe.
class LoadedTree {
 public:
  struct Options {
    std::string directory;  // is there
    LoadRun run;
    std::string certificates;  // as MakeLoadCertificates made them; empty: cleartext
    int64_t clients = 0;
    int64_t relays = 0;  // that share the clients among them; 0: these are the coordinator's own
    std::string relay_mode;
  };
  struct Server {
    std::string name;
    int64_t clients = 0;  // that are connected to it
    std::unique_ptr<LoadedServer> process;
    AdminClient admin;  // connected: a server that is busy may leave a new connection alone for too long
  };

  // Returns once the relays have joined the run. Statuses of LoadedServer::Start; DEADLINE_EXCEEDED when a relay does
  // not join.
  static absl::StatusOr<std::unique_ptr<LoadedTree>> Start(const Options& options);

  Server& coordinator() { return servers_.front(); }
  absl::Span<Server> relays() { return absl::MakeSpan(servers_).subspan(1); }
  // The servers that clients connect to: client N to number N of them, round and round.
  absl::Span<Server> fronts() { return servers_.size() > 1 ? relays() : absl::MakeSpan(servers_); }

  struct Sample {
    LoadedServer::Sample coordinator;
    std::vector<LoadedServer::Sample> relays;
  };
  // The next three: statuses of LoadedServer.
  absl::StatusOr<Sample> Take();
  absl::Status CheckRun();
  // The relays end first, so that none misses its coordinator.
  absl::Status Stop();

 private:
  LoadedTree() = default;
  absl::Status StartServer(LoadedServer::Options options, const std::string& certificates);
  absl::Status StartRelay(const Options& options, int64_t number);

  std::vector<Server> servers_;  // the coordinator, and then the relays
};

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOADED_TREE_H_
