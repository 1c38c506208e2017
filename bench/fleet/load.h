// A whole load: one coordinator, relays where they are wanted, and processes of clients that keep them busy.
#ifndef TERSE_BENCH_FLEET_LOAD_H_
#define TERSE_BENCH_FLEET_LOAD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/fleet/load_figures.h"

namespace terse {

struct LoadOptions {
  int64_t clients = 0;
  int64_t relays = 0;  // that the clients are spread over, at most as many; 0: they are the coordinator's own
  std::string relay_mode = "recompress";  // terse-relay's --mode
  int64_t processes = 2;
  int64_t parameters = 79'510;
  double density = 0.01;
  int64_t rounds = 20;     // at least 2: figures of rounds are of those after the first
  std::string downstream;  // empty: the product's default
  bool tls = false;
  double patience_seconds = 600;  // without a new version
};

// Runs it to its end. INVALID_ARGUMENT for more relays than clients; RESOURCE_EXHAUSTED when the system allows too few
// open files; DEADLINE_EXCEEDED when no version comes for the patience, with how far it came; INTERNAL when a client's
// model is not the coordinator's, and whatever ends a client or a server.
absl::StatusOr<LoadFigures> RunLoad(const LoadOptions& options);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_H_
