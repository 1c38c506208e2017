// A run of a paper's table as a real fleet: the coordinator's engine, store and gRPC server in this process, and
// virtual clients in one worker process a core, over loopback. Bytes are those that the clients wrote to their sockets.
#ifndef TERSE_BENCH_PAPER_FLEET_H_
#define TERSE_BENCH_PAPER_FLEET_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tersectl/report.h"

namespace terse {

struct FleetOptions {
  std::string run_file;   // TOML
  std::string directory;  // state of coordinator and clients; a fleet that was stopped goes on from there
  std::string data;       // directory of the data sets
  std::string device = "auto";
  int64_t clients = 0;
  int workers = 1;                   // processes for the clients
  double link_bytes_per_second = 0;  // of each client (thin_link.h); 0: loopback as it is
};

struct FleetResult {
  Summary summary;
  std::vector<v1::Round> rounds;
};

// Runs the fleet to the end of its run. `on_round` is called for every committed round; `earlier` are those that were
// when the fleet started. CANCELLED after SIGINT or SIGTERM, with everything kept; other statuses are the
// coordinator's, or UNAVAILABLE when a worker failed, with the file that has its last words.
absl::StatusOr<FleetResult> RunFleet(const FleetOptions& options,
                                     const std::function<void(const v1::Round& round, bool earlier)>& on_round);

}  // namespace terse

#endif  // TERSE_BENCH_PAPER_FLEET_H_
