// The figures of a load, from what its servers and its clients counted.
#ifndef TERSE_BENCH_FLEET_LOAD_FIGURES_H_
#define TERSE_BENCH_FLEET_LOAD_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "bench/fleet/client_processes.h"
#include "bench/fleet/loaded_tree.h"

namespace terse {

inline constexpr double kKibPerMib = 1024;

struct RelayFigures {
  int64_t clients = 0;
  double cpu_us_per_client_round = 0;
  double base_mib = 0, peak_mib = 0;
  double kib_per_client = 0;  // by which it grew from the one to the other
  double syncs_per_round = 0;
};

struct LoadFigures {
  std::string model;
  int64_t parameters = 0;
  std::string downstream;     // as the coordinator has it
  double certificates_s = 0;  // that making them took, before anything else; 0 without TLS
  double join_s = 0;          // from the first connection to the opening of round 1, at the last relay where there are
  // Seconds of the rounds after the first, from commit to commit, by the coordinator's clock and rows.
  double round_s_p50 = 0, round_s_p99 = 0;
  // The second is the first for all clients together.
  double coordinator_cpu_us_per_client_round = 0, coordinator_cpu_us_per_round = 0;
  double coordinator_base_mib = 0, coordinator_peak_mib = 0;
  // By the ledgers of those that the clients are connected to.
  double bytes_up_per_client_round = 0, bytes_down_per_client_round = 0;
  double wire_up_per_client_round = 0, wire_down_per_client_round = 0;
  // By the coordinator's ledger: of all clients, or of the relays.
  double coordinator_bytes_up_per_round = 0, coordinator_bytes_down_per_round = 0;
  double coordinator_wire_up_per_round = 0, coordinator_wire_down_per_round = 0;
  double syncs_per_round = 0;           // of the coordinator
  int64_t syncs_before_rounds = 0;      // from the coordinator's start to the first commit: joining is in it
  absl::optional<double> event_us_p50;  // of the coordinator's engine, since its start
  std::vector<RelayFigures> relays;
  // The clients count these from the first connection to the last.
  int64_t updates_applied = 0, updates_not_applied = 0, resets = 0;
  int64_t connections = 0, downloads = 0;
  int64_t refusals = 0;        // of check-ins, which came back as they were told
  int64_t models_checked = 0;  // versions that a process made itself and whose hash was the coordinator's
  double client_kib = 0;       // by which a process grew at most, per client: connection and all
};

// Rounds may go by before this process is given a processor, so a sample is of the version that is the newest by then.
struct LoadSamples {
  LoadedTree::Sample base;  // before clients
  LoadedTree::Sample first, last;
  int64_t rounds = 0;  // between first and last
};

// Fills in what the samples say of the tree's servers, whose clients there are so many of.
void ReadSamples(const LoadSamples& samples, int64_t clients, LoadedTree* tree, LoadFigures* figures);
// Fills in what the rows of the first so many rounds say; clients connected from `began` on. INTERNAL when a server has
// fewer, or one that is not committed. Statuses of AdminClient.
absl::Status ReadRounds(int64_t rounds, int64_t clients, absl::Time began, LoadedTree* tree, LoadFigures* figures);
void ReadCounts(const LoadCounts& counts, int64_t clients, LoadFigures* figures);

}  // namespace terse

#endif  // TERSE_BENCH_FLEET_LOAD_FIGURES_H_
