#include "bench/fleet/load_figures.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

double MibFrom(int64_t kib) { return static_cast<double>(kib) / kKibPerMib; }

// The smallest element that so large a share of all does not exceed. There is one.
double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<int64_t>(0, rank - 1)];
}

// The rounds of a server after its first.
struct RoundSums {
  int64_t first_opened_us = 0;  // of the first itself
  std::vector<double> seconds;
  double up = 0, down = 0, wire_up = 0, wire_down = 0;
};

absl::StatusOr<RoundSums> SumRounds(int64_t wanted, LoadedTree::Server* server) {
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, server->admin.ListRounds(1, wanted));
  if (rounds.size() != static_cast<size_t>(wanted)) {
    return absl::InternalError(absl::StrCat(server->name, " has ", rounds.size(), " of ", wanted, " rounds"));
  }
  RoundSums sums;
  sums.first_opened_us = rounds[0].opened_us();
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (rounds[i].state() != "committed") {
      return absl::InternalError(
          absl::StrCat("round ", rounds[i].id(), " of ", server->name, " is ", rounds[i].state(), ", not committed"));
    }
    if (i == 0) continue;
    sums.seconds.push_back(static_cast<double>(rounds[i].committed_us() - rounds[i - 1].committed_us()) * 1e-6);
    sums.up += static_cast<double>(rounds[i].payload_bytes_up());
    sums.down += static_cast<double>(rounds[i].payload_bytes_down());
    sums.wire_up += static_cast<double>(rounds[i].wire_bytes_up());
    sums.wire_down += static_cast<double>(rounds[i].wire_bytes_down());
  }
  return sums;
}

// Microseconds of processor time a round.
double CpuPerRound(const LoadedServer::Sample& first, const LoadedServer::Sample& last, int64_t rounds) {
  return absl::ToDoubleMicroseconds(last.processor - first.processor) / static_cast<double>(rounds);
}

double SyncsPerRound(const LoadedServer::Sample& first, const LoadedServer::Sample& last, int64_t rounds) {
  return static_cast<double>(last.syncs - first.syncs) / static_cast<double>(rounds);
}

RelayFigures FiguresOfRelay(const LoadSamples& samples, size_t relay, int64_t clients) {
  const LoadedServer::Sample &base = samples.base.relays[relay], &first = samples.first.relays[relay],
                             &last = samples.last.relays[relay];
  RelayFigures figures;
  figures.clients = clients;
  figures.cpu_us_per_client_round = CpuPerRound(first, last, samples.rounds) / static_cast<double>(clients);
  figures.base_mib = MibFrom(base.memory.resident_kib);
  figures.peak_mib = MibFrom(last.memory.peak_kib);
  figures.kib_per_client =
      static_cast<double>(last.memory.peak_kib - base.memory.resident_kib) / static_cast<double>(clients);
  figures.syncs_per_round = SyncsPerRound(first, last, samples.rounds);
  return figures;
}

}  // namespace

void ReadSamples(const LoadSamples& samples, int64_t clients, LoadedTree* tree, LoadFigures* figures) {
  const LoadedServer::Sample &first = samples.first.coordinator, &last = samples.last.coordinator;
  figures->coordinator_cpu_us_per_round = CpuPerRound(first, last, samples.rounds);
  figures->coordinator_cpu_us_per_client_round = figures->coordinator_cpu_us_per_round / static_cast<double>(clients);
  figures->coordinator_base_mib = MibFrom(samples.base.coordinator.memory.resident_kib);
  figures->coordinator_peak_mib = MibFrom(last.memory.peak_kib);
  figures->syncs_before_rounds = first.syncs;
  figures->syncs_per_round = SyncsPerRound(first, last, samples.rounds);
  for (const LoadedTree::Server& relay : tree->relays()) {
    figures->relays.push_back(FiguresOfRelay(samples, figures->relays.size(), relay.clients));
  }
}

absl::Status ReadRounds(int64_t rounds, int64_t clients, absl::Time began, LoadedTree* tree, LoadFigures* figures) {
  TERSE_ASSIGN_OR_RETURN(const RoundSums above, SumRounds(rounds, &tree->coordinator()));
  const auto measured = static_cast<double>(rounds - 1);
  figures->round_s_p50 = Quantile(above.seconds, 0.5);
  figures->round_s_p99 = Quantile(above.seconds, 0.99);
  figures->coordinator_bytes_up_per_round = above.up / measured;
  figures->coordinator_bytes_down_per_round = above.down / measured;
  figures->coordinator_wire_up_per_round = above.wire_up / measured;
  figures->coordinator_wire_down_per_round = above.wire_down / measured;
  const double shares = measured * static_cast<double>(clients);
  for (LoadedTree::Server& front : tree->fronts()) {
    TERSE_ASSIGN_OR_RETURN(const RoundSums sums, SumRounds(rounds, &front));
    figures->join_s =
        std::max(figures->join_s, static_cast<double>(sums.first_opened_us - absl::ToUnixMicros(began)) * 1e-6);
    figures->bytes_up_per_client_round += sums.up / shares;
    figures->bytes_down_per_client_round += sums.down / shares;
    figures->wire_up_per_client_round += sums.wire_up / shares;
    figures->wire_down_per_client_round += sums.wire_down / shares;
  }
  return absl::OkStatus();
}

void ReadCounts(const LoadCounts& counts, int64_t clients, LoadFigures* figures) {
  figures->updates_applied = counts.applied;
  figures->updates_not_applied = counts.not_applied;
  figures->resets = counts.resets;
  figures->connections = counts.connections;
  figures->refusals = counts.refusals;
  figures->downloads = counts.downloads;
  figures->models_checked = counts.models_checked;
  figures->client_kib = static_cast<double>(counts.memory_kib) / static_cast<double>(clients);
}

}  // namespace terse
