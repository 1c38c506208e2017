#include "bench/fleet/load.h"

#include <stdlib.h>

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
#include "bench/fleet/loaded_tree.h"
#include "core/file_system.h"
#include "core/status.h"

namespace terse {
namespace {

// Clients hear of the end, and go, within this.
constexpr absl::Duration kEndPatience = absl::Minutes(10);

absl::Status NoVersion(const LoadOptions& options, int64_t version, const absl::StatusOr<LoadedTree::Sample>& sample) {
  if (!sample.ok()) return sample.status();
  return absl::DeadlineExceededError(absl::StrFormat(
      "no version after %d came for %.0f s; the coordinator has taken %.1f s of processor time and %.0f MiB at its "
      "peak. --patience SECONDS waits longer",
      version, options.patience_seconds, absl::ToDoubleSeconds(sample->coordinator.processor),
      static_cast<double>(sample->coordinator.memory.peak_kib) / kKibPerMib));
}

// Adds to `samples` those of the rounds that are measured.
absl::Status AwaitRounds(const LoadOptions& options, ClientProcesses* clients, LoadedTree* tree, LoadSamples* samples) {
  int64_t version = 0, first = 0;
  absl::Time deadline = absl::Now() + absl::Seconds(options.patience_seconds);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const absl::optional<int64_t> next, clients->AwaitVersion(absl::Seconds(1)));
    if (!next.has_value()) {
      if (absl::Now() > deadline) return NoVersion(options, version, tree->Take());
      TERSE_RETURN_IF_ERROR(tree->CheckRun());
      continue;
    }
    deadline = absl::Now() + absl::Seconds(options.patience_seconds);
    version = *next;
    if (first == 0) {
      first = version;
      TERSE_ASSIGN_OR_RETURN(samples->first, tree->Take());
    } else if (version >= options.rounds) {
      samples->rounds = version - first;
      TERSE_ASSIGN_OR_RETURN(samples->last, tree->Take());
      return absl::OkStatus();
    }
  }
}

// From the first connection to the last.
absl::Status Drive(const LoadOptions& options, LoadedTree* tree, ClientProcesses* clients, LoadFigures* figures) {
  LoadedTree::Server& coordinator = tree->coordinator();
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, coordinator.admin.GetStatus());
  figures->downstream = status.config().codec().downstream();
  LoadSamples samples;
  TERSE_ASSIGN_OR_RETURN(samples.base, tree->Take());
  const absl::Time began = absl::Now();
  TERSE_RETURN_IF_ERROR(clients->Go());
  TERSE_RETURN_IF_ERROR(AwaitRounds(options, clients, tree, &samples));
  ReadSamples(samples, options.clients, tree, figures);
  if (const absl::optional<absl::Duration> event = coordinator.process->EventTime(); event.has_value()) {
    figures->event_us_p50 = absl::ToDoubleMicroseconds(*event);
  }
  TERSE_RETURN_IF_ERROR(coordinator.admin.Stop(/*shutdown=*/false).status());
  TERSE_ASSIGN_OR_RETURN(const LoadCounts counts, clients->Finish(kEndPatience));
  ReadCounts(counts, options.clients, figures);
  TERSE_RETURN_IF_ERROR(ReadRounds(options.rounds, options.clients, began, tree, figures));
  return tree->Stop();
}

absl::StatusOr<LoadFigures> RunIn(const LoadOptions& options, const std::string& directory) {
  LoadFigures figures;
  TERSE_ASSIGN_OR_RETURN(const LoadRun run, WriteLoadRun({options.clients, options.relays, options.parameters,
                                                          options.density, options.rounds, options.downstream},
                                                         directory));
  figures.model = run.model;
  figures.parameters = run.parameters;
  LoadedTree::Options serving = {directory, run, "", options.clients, options.relays, options.relay_mode};
  if (options.tls) {
    const absl::Time began = absl::Now();
    serving.certificates = FilePath(directory, "tls");
    TERSE_RETURN_IF_ERROR(MakeLoadCertificates(options.clients, options.relays, serving.certificates));
    figures.certificates_s = absl::ToDoubleSeconds(absl::Now() - began);
  }
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedTree> tree, LoadedTree::Start(serving));
  ClientProcesses::Options clients = {{}, run.run_file, serving.certificates, options.clients, options.processes};
  for (const LoadedTree::Server& front : tree->fronts()) clients.servers.push_back(front.process->address());
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<ClientProcesses> processes, ClientProcesses::Start(clients));
  TERSE_RETURN_IF_ERROR(Drive(options, tree.get(), processes.get(), &figures));
  return figures;
}

}  // namespace

absl::StatusOr<LoadFigures> RunLoad(const LoadOptions& options) {
  if (options.relays > options.clients) {
    return absl::InvalidArgumentError(absl::StrCat("each of ", options.relays, " relays needs a client, and there are ",
                                                   options.clients, "; use more --clients"));
  }
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
