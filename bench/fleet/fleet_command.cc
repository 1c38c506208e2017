#include "bench/fleet/fleet_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/fleet/load.h"
#include "core/status.h"

namespace terse {
namespace {

struct FleetCommandOptions {
  LoadOptions load;
  bool json = false;
};

nlohmann::ordered_json Settings(const LoadOptions& options, const LoadFigures& figures) {
  return {{"clients", options.clients},       {"relays", options.relays},
          {"relay_mode", options.relay_mode}, {"processes", options.processes},
          {"model", figures.model},           {"parameters", figures.parameters},
          {"density", options.density},       {"rounds", options.rounds},
          {"downstream", figures.downstream}, {"tls", options.tls}};
}

// Beside the figures of the product: that the load was right, and its own cost.
nlohmann::ordered_json LoadItself(const LoadFigures& figures) {
  return {{"wire_bytes_up_per_client_round", figures.wire_up_per_client_round},
          {"wire_bytes_down_per_client_round", figures.wire_down_per_client_round},
          {"coordinator_wire_bytes_up_per_round", figures.coordinator_wire_up_per_round},
          {"coordinator_wire_bytes_down_per_round", figures.coordinator_wire_down_per_round},
          {"syncs_before_rounds", figures.syncs_before_rounds},
          {"updates_applied", figures.updates_applied},
          {"updates_not_applied", figures.updates_not_applied},
          {"resets", figures.resets},
          {"connections", figures.connections},
          {"refusals", figures.refusals},
          {"downloads", figures.downloads},
          {"models_checked", figures.models_checked},
          {"client_kib", figures.client_kib},
          {"certificates_s", figures.certificates_s}};
}

nlohmann::ordered_json Relays(const LoadFigures& figures) {
  nlohmann::ordered_json relays = nlohmann::ordered_json::array();
  for (const RelayFigures& relay : figures.relays) {
    relays.push_back({{"clients", relay.clients},
                      {"cpu_us_per_client_round", relay.cpu_us_per_client_round},
                      {"base_mib", relay.base_mib},
                      {"peak_mib", relay.peak_mib},
                      {"kib_per_client", relay.kib_per_client},
                      {"syncs_per_round", relay.syncs_per_round}});
  }
  return relays;
}

void PrintJson(const LoadOptions& options, const LoadFigures& figures) {
  nlohmann::ordered_json json = {{"settings", Settings(options, figures)},
                                 {"join_s", figures.join_s},
                                 {"round_s_p50", figures.round_s_p50},
                                 {"round_s_p99", figures.round_s_p99},
                                 {"coordinator_cpu_us_per_client_round", figures.coordinator_cpu_us_per_client_round},
                                 {"coordinator_cpu_us_per_round", figures.coordinator_cpu_us_per_round},
                                 {"coordinator_base_mib", figures.coordinator_base_mib},
                                 {"coordinator_peak_mib", figures.coordinator_peak_mib},
                                 {"bytes_up_per_client_round", figures.bytes_up_per_client_round},
                                 {"bytes_down_per_client_round", figures.bytes_down_per_client_round},
                                 {"coordinator_bytes_up_per_round", figures.coordinator_bytes_up_per_round},
                                 {"coordinator_bytes_down_per_round", figures.coordinator_bytes_down_per_round},
                                 {"syncs_per_round", figures.syncs_per_round},
                                 {"event_us_p50", nullptr},
                                 {"relays", Relays(figures)},
                                 {"load", LoadItself(figures)}};
  if (figures.event_us_p50.has_value()) json["event_us_p50"] = *figures.event_us_p50;
  std::printf("%s\n", json.dump(2).c_str());
}

using Rows = std::vector<std::pair<std::string, std::string>>;

void AddServerRows(const LoadFigures& figures, Rows* rows) {
  rows->push_back({"coordinator's processor time", absl::StrFormat("%.1f us a client and round, %.2f ms a round",
                                                                   figures.coordinator_cpu_us_per_client_round,
                                                                   figures.coordinator_cpu_us_per_round * 1e-3)});
  rows->push_back(
      {"coordinator's memory", absl::StrFormat("%.1f MiB before clients, %.1f MiB at its peak",
                                               figures.coordinator_base_mib, figures.coordinator_peak_mib)});
  for (const RelayFigures& relay : figures.relays) {
    rows->push_back({absl::StrFormat("a relay of %d clients: processor time", relay.clients),
                     absl::StrFormat("%.1f us a client and round", relay.cpu_us_per_client_round)});
    rows->push_back({"  its memory", absl::StrFormat("%.1f MiB before clients, %.1f MiB at its peak, %.1f KiB a client",
                                                     relay.base_mib, relay.peak_mib, relay.kib_per_client)});
    rows->push_back({"  its syncs", absl::StrFormat("%.1f a round", relay.syncs_per_round)});
  }
}

void AddByteRows(const LoadFigures& figures, Rows* rows) {
  rows->push_back({"payload of a client and round",
                   absl::StrFormat("%.1f bytes up, %.1f bytes down", figures.bytes_up_per_client_round,
                                   figures.bytes_down_per_client_round)});
  rows->push_back({"on the wire", absl::StrFormat("%.1f bytes up, %.1f bytes down", figures.wire_up_per_client_round,
                                                  figures.wire_down_per_client_round)});
  rows->push_back({"coordinator's payload of a round",
                   absl::StrFormat("%.0f bytes up, %.0f bytes down", figures.coordinator_bytes_up_per_round,
                                   figures.coordinator_bytes_down_per_round)});
  rows->push_back(
      {"coordinator's bytes on the wire", absl::StrFormat("%.0f up, %.0f down", figures.coordinator_wire_up_per_round,
                                                          figures.coordinator_wire_down_per_round)});
}

void AddRowsOfLoad(const LoadFigures& figures, Rows* rows) {
  rows->push_back({"coordinator's syncs", absl::StrFormat("%.1f a round; %d until the first commit",
                                                          figures.syncs_per_round, figures.syncs_before_rounds)});
  rows->push_back({"an event of the coordinator's engine", figures.event_us_p50.has_value()
                                                               ? absl::StrFormat("p50 %.2f us", *figures.event_us_p50)
                                                               : "not told"});
  // The end of the run gives up the round that is open then.
  rows->push_back({"updates", absl::StrFormat("%d applied, %d not applied with the end's round, %d resets",
                                              figures.updates_applied, figures.updates_not_applied, figures.resets)});
  rows->push_back(
      {"connections, downloads of the model",
       absl::StrFormat("%d (%d refused for a while), %d", figures.connections, figures.refusals, figures.downloads)});
  rows->push_back({"models compared with the coordinator's", absl::StrFormat("%d, all equal", figures.models_checked)});
  rows->push_back({"memory of a client with its connection", absl::StrFormat("%.1f KiB", figures.client_kib)});
}

void PrintTable(const LoadOptions& options, const LoadFigures& figures) {
  const std::string behind =
      options.relays > 0 ? absl::StrCat(" behind ", options.relays, " relays (", options.relay_mode, ")") : "";
  absl::PrintF("%d clients%s in %d processes, %s; %s with %d parameters, density %g, downstream %s; %d rounds\n",
               options.clients, behind, options.processes, options.tls ? "TLS" : "cleartext", figures.model,
               figures.parameters, options.density, figures.downstream, options.rounds);
  Rows rows;
  if (options.tls) rows.push_back({"making the certificates", absl::StrFormat("%.1f s", figures.certificates_s)});
  rows.push_back({"joining, until round 1 opens", absl::StrFormat("%.3f s", figures.join_s)});
  rows.push_back({"a round, from commit to commit",
                  absl::StrFormat("p50 %.4f s, p99 %.4f s", figures.round_s_p50, figures.round_s_p99)});
  AddServerRows(figures, &rows);
  AddByteRows(figures, &rows);
  AddRowsOfLoad(figures, &rows);
  for (const auto& [name, value] : rows) absl::PrintF("  %-40s %s\n", name, value);
}

absl::StatusOr<int> RunFleetCommand(const FleetCommandOptions& options) {
  TERSE_ASSIGN_OR_RETURN(const LoadFigures figures, RunLoad(options.load));
  if (options.json) {
    PrintJson(options.load, figures);
  } else {
    PrintTable(options.load, figures);
  }
  return 0;
}

}  // namespace

void AddFleetCommand(CLI::App* app, Command* command) {
  const auto options = std::make_shared<FleetCommandOptions>();
  CLI::App* sub = app->add_subcommand(
      "fleet",
      "A coordinator, with or without relays, under the load of many clients, which speak the whole protocol with "
      "prepared updates");
  LoadOptions& load = options->load;
  sub->add_option("--clients", load.clients, "Clients, each with a connection of its own")
      ->required()
      ->check(WholeNumber(1, 100'000));
  CLI::Option* const relays =
      sub->add_option("--relays", load.relays,
                      "Relays that the clients are spread over, each in a process of its own; 0: none")
          ->check(WholeNumber(0, 1024))
          ->capture_default_str();
  sub->add_option("--relay-mode", load.relay_mode,
                  "What the relays send: recompress, the compressed mean of their clients' updates, or forward, the "
                  "updates as they are")
      ->check(CLI::IsMember({"recompress", "forward"}))
      ->needs(relays)
      ->capture_default_str();
  sub->add_option("--processes", load.processes, "Processes that the clients are spread over")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  sub->add_option("--parameters", load.parameters,
                  "Parameters of the model: 431080 is lenet5_caffe; otherwise the perceptron that comes nearest")
      ->check(WholeNumber(1, 1'677'000'000))
      ->capture_default_str();
  sub->add_option("--density", load.density, "Of the updates, which are SBC's, and of a downstream codec")
      ->check(Number(1e-9, 1))
      ->capture_default_str();
  sub->add_option("--rounds", load.rounds, "Rounds; the first is not measured")
      ->check(WholeNumber(2, 1'000'000))
      ->capture_default_str();
  sub->add_option("--downstream", load.downstream,
                  "As codec.downstream of run files (docs/RUN_FILE.md); the product's default without it");
  sub->add_flag("--tls", load.tls,
                "Over TLS, with a throw-away authority and a certificate for each client and server");
  sub->add_option("--patience", load.patience_seconds, "Seconds without a new version after which it gives up")
      ->check(NumberAboveZero())
      ->capture_default_str();
  sub->add_flag("--json", options->json, "Figures as JSON");
  sub->callback([options, command] { *command = [options] { return RunFleetCommand(*options); }; });
}

}  // namespace terse
