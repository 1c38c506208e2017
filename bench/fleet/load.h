// A whole load: one coordinator, and processes of clients that keep it busy.
#ifndef TERSE_BENCH_FLEET_LOAD_H_
#define TERSE_BENCH_FLEET_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace terse {

struct LoadOptions {
  int64_t clients = 0;
  int64_t processes = 2;
  int64_t parameters = 79'510;
  double density = 0.01;
  int64_t rounds = 20;     // at least 2: figures of rounds are of those after the first
  std::string downstream;  // empty: the product's default
  bool tls = false;
  double patience_seconds = 600;  // without a new version
};

struct LoadFigures {
  std::string model;
  int64_t parameters = 0;
  std::string downstream;     // as the coordinator has it
  double certificates_s = 0;  // that making them took, before anything else; 0 without TLS
  double join_s = 0;          // from the first connection to the opening of round 1
  // Seconds of the rounds after the first, from commit to commit, by the coordinator's clock and rows.
  double round_s_p50 = 0, round_s_p99 = 0;
  double coordinator_cpu_us_per_client_round = 0;
  double coordinator_base_mib = 0, coordinator_peak_mib = 0;
  // By the ledger.
  double bytes_up_per_client_round = 0, bytes_down_per_client_round = 0;
  double wire_up_per_client_round = 0, wire_down_per_client_round = 0;
  double syncs_per_round = 0;
  int64_t syncs_before_rounds = 0;      // from the coordinator's start to the first commit: joining is in it
  absl::optional<double> event_us_p50;  // since the coordinator's start
  // The clients count these from the first connection to the last.
  int64_t updates_applied = 0, updates_not_applied = 0, resets = 0;
  int64_t connections = 0, downloads = 0;
  int64_t models_checked = 0;  // versions that a process made itself and whose hash was the coordinator's
  double client_kib = 0;       // by which a process grew at most, per client: connection and all
};

// Runs it to its end. RESOURCE_EXHAUSTED when the system allows too few open files; DEADLINE_EXCEEDED when no version
// comes for the patience, with how far it came; INTERNAL when a client's model is not the coordinator's, and whatever
// ends a client or the coordinator.
absl::StatusOr<LoadFigures> RunLoad(const LoadOptions& options);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_H_
