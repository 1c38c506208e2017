#include "simulation/simulation_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/man_page.h"
#include "core/cli/progress_line.h"
#include "core/log/log.h"
#include "core/log/plain_text.h"
#include "core/run_config.h"
#include "core/status.h"
#include "core/version.h"
#include "security/connection_failure.h"
#include "simulation/simulation.h"
#include "simulation/simulation_run.h"
#include "tersectl/text_table.h"

namespace terse {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitStopped = 130;

std::atomic<int> stops{0};

struct CommandOptions {
  std::string run_file;
  std::string model_file;
  RunChanges changes;
  SimulationOptions simulation;
  bool json = false;
};

void AddOptions(CLI::App* app, CommandOptions* options) {
  app->add_option("RUN_FILE", options->run_file, "run file (TOML)")->required()->check(ExistingFile());
  app->add_option("--clients", options->changes.clients, "clients of the fleet; without it, rounds.clients")
      ->check(WholeNumber(1, 100'000));
  app->add_option("--cohort", options->changes.cohort,
                  "clients that take part in a round, drawn at random; without it, as the run file says")
      ->check(WholeNumber(1, 100'000));
  app->add_option(
         "--relays", options->changes.relays,
         "relays between the coordinator and the clients, with as many clients each (docs/SCALE.md); needs the "
         "program terse-relay")
      ->check(WholeNumber(1, 1000));
  app->add_option("--relay-mode", options->changes.relay_mode,
                  "what the relays send: recompress, the compressed mean of their clients' updates, or forward, the "
                  "updates as they are")
      ->check(CLI::IsMember({"recompress", "forward"}))
      ->capture_default_str();
  app->add_option("--rounds", options->changes.rounds, "rounds of the run; without it, rounds.count")
      ->check(WholeNumber(1, 100'000'000));
  app->add_option("--processes", options->simulation.processes,
                  "processes that the clients are shared out to, each with a thread that trains; the result is the "
                  "same for any number")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  app->add_option("--state", options->simulation.directory,
                  "directory of the states of coordinator and clients; a simulation that was stopped goes on from "
                  "there. Without it, state/NAME")
      ->type_name("DIR");
  app->add_option("--data", options->simulation.data, "directory of the data set; without it, an embedded one")
      ->check(ExistingFolder());
  app->add_option("--device", options->simulation.device, "where to train")
      ->check(OneOf({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app->add_option("--threads", options->simulation.threads, "threads of LibTorch in each process")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  app->add_option("--model", options->model_file, "safetensors file of a model that only the trainers know")
      ->check(ExistingFile());
  CLI::Option* trainer = app->add_option("--trainer", options->simulation.trainer,
                                         "command that starts a trainer of your own (docs/TRAINER.md), one for each "
                                         "process, which trains for one client after the other");
  // The package for Python gives them, not people.
  app->add_option("--trainer-fd", options->simulation.trainer_sockets)->group("")->excludes(trainer);
  app->add_option("--trainer-seconds", options->simulation.trainer_seconds,
                  "seconds that a client's training in a trainer of your own may take")
      ->check(Number(0.1, 2592000.0))
      ->capture_default_str();
  app->add_flag("--json", options->json, "the result as JSON");
}

nlohmann::ordered_json ResultJson(const SimulationResult& result) {
  nlohmann::ordered_json json = SummaryJson(result.summary);
  json["fleet"] = result.clients;
  json["cohort"] = result.cohort;
  json["model_hash"] = result.model_hash;
  json["join_seconds"] = result.join_seconds;
  json["round_seconds_p50"] = result.round_seconds;
  json["peak_memory_kib"] = result.peak_kib();
  json["coordinator_memory_kib"] = result.coordinator_kib;
  json["client_processes_memory_kib"] = result.host_kib;
  json["relays"] = nlohmann::ordered_json::array();
  for (const RelayFigures& relay : result.relays) {
    json["relays"].push_back({{"name", relay.name},
                              {"payload_bytes_up", relay.below.payload_bytes_up},
                              {"wire_bytes_up", relay.below.wire_bytes_up},
                              {"payload_bytes_down", relay.below.payload_bytes_down},
                              {"wire_bytes_down", relay.below.wire_bytes_down},
                              {"memory_kib", relay.peak_kib}});
  }
  return json;
}

std::string MiB(int64_t kib) { return absl::StrFormat("%.0f MiB", static_cast<double>(kib) / 1024); }

std::string FleetText(const SimulationResult& result) {
  if (result.relays.empty()) return absl::StrCat(result.clients, " clients, cohorts of ", result.cohort);
  return absl::StrCat(result.clients, " clients behind ", result.relays.size(), " relays");
}

// Adds the bytes between the clients and their relays; the summary has those between the relays and the coordinator.
void AddRelays(const std::vector<RelayFigures>& relays, TextTable* table) {
  if (relays.empty()) return;
  uint64_t up = 0, down = 0;
  int64_t kib = 0;
  for (const RelayFigures& relay : relays) {
    up += relay.below.wire_bytes_up;
    down += relay.below.wire_bytes_down;
    kib = std::max(kib, relay.peak_kib);
  }
  table->AddRow({"  the largest relay", MiB(kib)});
  table->AddRow({"below the relays, up", BytesText(up)});
  table->AddRow({"below the relays, down", BytesText(down)});
}

std::string ResultTable(const SimulationResult& result) {
  std::vector<std::string> hosts;
  for (const int64_t kib : result.host_kib) hosts.push_back(MiB(kib));
  TextTable table({{"simulation"}, {FleetText(result)}});
  table.AddRow({"model", result.model_hash});
  table.AddRow({"joining", absl::StrFormat("%.1f s", result.join_seconds)});
  table.AddRow({"a round, median", absl::StrFormat("%.2f s", result.round_seconds)});
  table.AddRow({"memory, most", MiB(result.peak_kib())});
  table.AddRow({"  coordinator", MiB(result.coordinator_kib)});
  for (size_t i = 0; i < hosts.size(); ++i) {
    table.AddRow({absl::StrCat("  process of clients ", i + 1), hosts[i]});
  }
  AddRelays(result.relays, &table);
  return table.Render(/*color=*/false);
}

absl::Status CheckTrainer(const CommandOptions& options) {
  const SimulationOptions& simulation = options.simulation;
  const bool has_own = !simulation.trainer.empty() || !simulation.trainer_sockets.empty();
  if (simulation.run.config.model().name() == kExternalModel && !has_own) {
    return absl::InvalidArgumentError(absl::StrCat(options.run_file,
                                                   ": the run trains a model that only the trainers know; give one "
                                                   "with --trainer, or use terse.simulate in Python"));
  }
  const auto sockets = static_cast<int64_t>(simulation.trainer_sockets.size());
  if (sockets == 0 || sockets == simulation.processes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--trainer-fd: ", simulation.processes, " processes need as many"));
}

absl::StatusOr<SimulationResult> Simulate(CommandOptions options, const RunLearningFactory& make_learning) {
  TERSE_ASSIGN_OR_RETURN(options.simulation.run,
                         LoadSimulationRun(options.run_file, options.changes, options.model_file));
  const v1::RunConfig& run = options.simulation.run.config;
  const int64_t clients = options.simulation.run.clients;
  TERSE_RETURN_IF_ERROR(CheckTrainer(options));
  if (options.simulation.directory.empty()) options.simulation.directory = absl::StrCat("state/", run.name());
  auto progress = std::make_unique<ProgressLine>(clients);
  int64_t joined_before = 0;
  bool joining = true;
  SimulationEvents events;
  events.stops = &stops;
  events.on_joined = [&](int64_t joined) {
    progress->Advance(static_cast<double>(joined - std::exchange(joined_before, joined)),
                      absl::StrCat(joined, " of ", clients, " clients have joined"));
  };
  events.on_round = [&](const v1::Round& round, bool earlier) {
    if (std::exchange(joining, false)) progress = std::make_unique<ProgressLine>(run.rounds().count());
    if (earlier) return progress->Skip(1);
    progress->Advance(
        1, absl::StrFormat("round %d of %d, loss %.4g", round.id(), run.rounds().count(), round.train_loss()));
  };
  return RunSimulation(options.simulation, make_learning, events);
}

}  // namespace

int RunSimulationProgram(int argc, char** argv, const RunLearningFactory& make_learning,
                         const TrainerMaking& make_trainers) {
  if (argc > 1 && absl::string_view(argv[1]) == kHostCommand) return RunHostProcess(argc, argv, make_trainers);
  CommandOptions options;
  CLI::App app(
      "Simulates a large fleet on this machine: a real coordinator, all clients in a few processes, which train in "
      "turn, "
      "and relays between them.");
  app.name("terse-simulate");
  app.set_version_flag("--version", kVersion);
  AddOptions(&app, &options);
  app.footer("Exit codes: 0 the run is finished, 1 failed, 2 wrong usage, 130 stopped before its end.");
  AddManFlag(app, kUserCommands);
  if (const absl::optional<int> code = ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { ++stops; });
  std::signal(SIGPIPE, SIG_IGN);
  QuietGrpc();
  ConfigureLog({LogFormat::kHuman, {LogLevel::kError}});
  const absl::StatusOr<SimulationResult> result = Simulate(options, make_learning);
  if (!result.ok()) {
    std::fprintf(stderr, "terse-simulate: %s\n", PlainText(result.status().message()).c_str());
    return absl::IsCancelled(result.status()) ? kExitStopped : kExitFailed;
  }
  if (options.json) {
    std::printf("%s\n", ResultJson(*result).dump(2).c_str());
  } else {
    std::printf("%s\n%s", SummaryTable(result->summary, isatty(STDOUT_FILENO) == 1).c_str(),
                ResultTable(*result).c_str());
  }
  return 0;
}

}  // namespace terse
