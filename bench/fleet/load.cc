#include "bench/fleet/load.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/fleet/client_processes.h"
#include "bench/fleet/load_certificates.h"
#include "bench/fleet/load_run.h"
#include "bench/fleet/loaded_coordinator.h"
#include "core/file_system.h"
#include "core/status.h"
#include "tersectl/admin_client.h"

namespace terse {
namespace {

constexpr double kKibPerMib = 1024;
// Clients hear of the end, and go, within this.
constexpr absl::Duration kEndPatience = absl::Minutes(10);
constexpr absl::Duration kAdminPatience = absl::Minutes(5);

using Sample = LoadedCoordinator::Sample;

// Rounds may go by before this process is given a processor, so a sample is of the version that is the newest by then.
struct Samples {
  Sample first, last;
  int64_t rounds = 0;  // between them
};

absl::Status NoVersion(const LoadOptions& options, int64_t version, const absl::StatusOr<Sample>& sample) {
  if (!sample.ok()) return sample.status();
  return absl::DeadlineExceededError(absl::StrFormat(
      "no version after %d came for %.0f s; the coordinator has taken %.1f s of processor time and %.0f MiB at its "
      "peak. --patience SECONDS waits longer",
      version, options.patience_seconds, absl::ToDoubleSeconds(sample->processor),
      static_cast<double>(sample->memory.peak_kib) / kKibPerMib));
}

absl::StatusOr<Samples> AwaitRounds(const LoadOptions& options, ClientProcesses* clients,
                                    LoadedCoordinator* coordinator) {
  Samples samples;
  int64_t version = 0, first = 0;
  absl::Time deadline = absl::Now() + absl::Seconds(options.patience_seconds);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> next, clients->AwaitVersion(absl::Seconds(1)));
    if (!next.has_value()) {
      if (absl::Now() > deadline) return NoVersion(options, version, coordinator->Take());
      TERSE_RETURN_IF_ERROR(coordinator->CheckRuns());
      continue;
    }
    deadline = absl::Now() + absl::Seconds(options.patience_seconds);
    version = *next;
    if (first == 0) {
      first = version;
      TERSE_ASSIGN_OR_RETURN(samples.first, coordinator->Take());
    } else if (version >= options.rounds) {
      samples.rounds = version - first;
      TERSE_ASSIGN_OR_RETURN(samples.last, coordinator->Take());
      return samples;
    }
  }
}

// The smallest element that so large a share of all does not exceed. There is one.
double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<int64_t>(0, rank - 1)];
}

absl::Status ReadRounds(const LoadOptions& options, const std::vector<v1::Round>& rounds, absl::Time began,
                        LoadFigures* figures) {
  std::vector<double> seconds;
  uint64_t up = 0, down = 0, wire_up = 0, wire_down = 0;
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (rounds[i].state() != "committed") {
      return absl::InternalError(absl::StrCat("round ", rounds[i].id(), " is ", rounds[i].state(), ", not committed"));
    }
    if (i == 0) continue;
    seconds.push_back(static_cast<double>(rounds[i].committed_us() - rounds[i - 1].committed_us()) * 1e-6);
    up += rounds[i].payload_bytes_up();
    down += rounds[i].payload_bytes_down();
    wire_up += rounds[i].wire_bytes_up();
    wire_down += rounds[i].wire_bytes_down();
  }
  if (seconds.size() + 1 != static_cast<size_t>(options.rounds)) {
    return absl::InternalError(absl::StrCat("the coordinator has ", rounds.size(), " of ", options.rounds, " rounds"));
  }
  const double shares = static_cast<double>(seconds.size()) * static_cast<double>(options.clients);
  figures->join_s = static_cast<double>(rounds[0].opened_us() - absl::ToUnixMicros(began)) * 1e-6;
  figures->round_s_p50 = Quantile(seconds, 0.5);
  figures->round_s_p99 = Quantile(seconds, 0.99);
  figures->bytes_up_per_client_round = static_cast<double>(up) / shares;
  figures->bytes_down_per_client_round = static_cast<double>(down) / shares;
  figures->wire_up_per_client_round = static_cast<double>(wire_up) / shares;
  figures->wire_down_per_client_round = static_cast<double>(wire_down) / shares;
  return absl::OkStatus();
}

void ReadSamples(const LoadOptions& options, const Samples& samples, LoadFigures* figures) {
  const auto rounds = static_cast<double>(samples.rounds);
  figures->coordinator_cpu_us_per_client_round =
      absl::ToDoubleMicroseconds(samples.last.processor - samples.first.processor) /
      (rounds * static_cast<double>(options.clients));
  figures->coordinator_peak_mib = static_cast<double>(samples.last.memory.peak_kib) / kKibPerMib;
  figures->syncs_before_rounds = samples.first.syncs;
  figures->syncs_per_round = static_cast<double>(samples.last.syncs - samples.first.syncs) / rounds;
}

void ReadCounts(const LoadOptions& options, const LoadCounts& counts, LoadFigures* figures) {
  figures->updates_applied = counts.applied;
  figures->updates_not_applied = counts.not_applied;
  figures->resets = counts.resets;
  figures->connections = counts.connections;
  figures->downloads = counts.downloads;
  figures->models_checked = counts.models_checked;
  figures->client_kib = static_cast<double>(counts.memory_kib) / static_cast<double>(options.clients);
}

// From the first connection to the last.
absl::Status Drive(const LoadOptions& options, LoadedCoordinator* coordinator, ClientProcesses* clients,
                   LoadFigures* figures) {
  TERSE_ASSIGN_OR_RETURN(const Sample base, coordinator->Take());
  figures->coordinator_base_mib = static_cast<double>(base.memory.resident_kib) / kKibPerMib;
  TERSE_ASSIGN_OR_RETURN(AdminClient admin, AdminClient::Make({coordinator->admin(), {}}, kAdminPatience));
  // This connects it: a coordinator that is busy with its clients may leave a new connection alone for too long.
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, admin.GetStatus());
  figures->downstream = status.config().codec().downstream();
  const absl::Time began = absl::Now();
  TERSE_RETURN_IF_ERROR(clients->Go());
  TERSE_ASSIGN_OR_RETURN(const Samples samples, AwaitRounds(options, clients, coordinator));
  ReadSamples(options, samples, figures);
  if (const absl::optional<absl::Duration> event = coordinator->EventTime(); event.has_value()) {
    figures->event_us_p50 = absl::ToDoubleMicroseconds(*event);
  }
  TERSE_RETURN_IF_ERROR(admin.Stop(/*shutdown=*/false).status());
  TERSE_ASSIGN_OR_RETURN(const LoadCounts counts, clients->Finish(kEndPatience));
  ReadCounts(options, counts, figures);
  TERSE_ASSIGN_OR_RETURN(const std::vector<v1::Round> rounds, admin.ListRounds(1, options.rounds));
  TERSE_RETURN_IF_ERROR(ReadRounds(options, rounds, began, figures));
  return coordinator->Stop();
}

absl::StatusOr<LoadFigures> RunIn(const LoadOptions& options, const std::string& directory) {
  LoadFigures figures;
  TERSE_ASSIGN_OR_RETURN(const LoadRun run, WriteLoadRun({options.clients, options.parameters, options.density,
                                                          options.rounds, options.downstream},
                                                         directory));
  figures.model = run.model;
  figures.parameters = run.parameters;
  LoadedCoordinator::Options serving = {directory, run.run_file, run.data, "", options.clients};
  ClientProcesses::Options clients = {"", run.run_file, "", options.clients, options.processes};
  if (options.tls) {
    const absl::Time began = absl::Now();
    clients.certificates = FilePath(directory, "tls");
    TERSE_RETURN_IF_ERROR(MakeLoadCertificates(options.clients, clients.certificates));
    serving.tls_folder = CoordinatorTlsFolder(clients.certificates);
    figures.certificates_s = absl::ToDoubleSeconds(absl::Now() - began);
  }
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedCoordinator> coordinator, LoadedCoordinator::Start(serving));
  clients.coordinator = coordinator->address();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ClientProcesses> processes, ClientProcesses::Start(clients));
  TERSE_RETURN_IF_ERROR(Drive(options, coordinator.get(), processes.get(), &figures));
  return figures;
}

}  // namespace

absl::StatusOr<LoadFigures> RunLoad(const LoadOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  std::string directory = (std::filesystem::temp_directory_path() / "terse-load-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return absl::ErrnoToStatus(errno, directory);
  const auto remove = absl::MakeCleanup([&directory] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  });
  return RunIn(options, directory);
}

}  // namespace terse
