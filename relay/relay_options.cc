// The command line of terse-relay, as relay.h declares it.
#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/log_components.h"
#include "compression/bundle.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/server_options.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/log_options.h"
#include "core/cli/man_page.h"
#include "core/session_messages.h"
#include "core/version.h"
#include "relay/relay.h"
#include "storage/module_file.h"

namespace terse {
namespace {

constexpr char kRecompressMode[] = "recompress";
constexpr char kForwardMode[] = "forward";

// Those of both halves. Lines of both are in the component "session": kSessionLog and kClientSessionLog.
constexpr absl::string_view kRelayLogs[] = {kServerLog, kRunLog, kSessionLog, kDaemonLog, kLinkLog, kTlsLog, kWebLog};

void AddUpstreamOptions(CLI::App& app, DaemonOptions* above) {
  app.add_option("--upstream", above->coordinators,
                 "host:port of the coordinator or relay above; with commas between them, of several that share their "
                 "runs: the relay goes on to the next when one does not serve")
      ->required()
      ->delimiter(',')
      ->check(DialAddress(UnixSockets::kAllowed));
  app.add_option("--name", above->name,
                 "name of this relay, unique among the clients above; with --tls, that of its certificate");
  app.add_option("--server-name", above->transport.server_name,
                 "host in the certificate above, where --upstream has another");
  app.add_option("--reconnect-after", above->first_backoff_seconds,
                 "seconds from a lost connection above to the next attempt; doubles up to 60 while attempts fail")
      ->check(Number(0.001, 60.0))
      ->capture_default_str();
  app.add_option("--run", above->run, "run to join; needed when the coordinator above serves several");
  app.add_option("--allow-model", above->allow_models,
                 "SHA-256 of a TorchScript model that this relay may hand on to its clients, as `tersectl run create` "
                 "prints it; may be given several times")
      ->check([](const std::string& hash) {
        return IsModuleHash(hash) ? "" : "'" + hash + "' is no SHA-256: 64 digits 0-9 and a-f";
      });
}

void AddRoundOptions(CLI::App& app, RelayRounds* rounds) {
  app.add_option("--clients", rounds->clients,
                 "clients of this relay: a round begins when they are ready, and closes with their updates")
      ->required()
      ->check(WholeNumber(1, 100'000));
  app.add_option("--quorum", rounds->quorum,
                 "fewest updates that may close a round without the others: at its deadline, or when nobody else is "
                 "here; 0: half of --clients")
      ->check(WholeNumber(0, 100'000))
      ->capture_default_str();
  app.add_option("--deadline", rounds->deadline_seconds,
                 "seconds from opening a round to closing it; 0: four fifths of the run's, so that the update is there "
                 "in time above")
      ->check(Number(0.0, 31536000.0))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--mode", [rounds](const std::string& mode) { rounds->forwards = mode == kForwardMode; },
         "recompress: the mean of a round's updates goes up, compressed with the run's codec, and what that leaves "
         "stays "
         "in the relay's residual. forward: the updates go up as they came, and count as they would without the relay, "
         "bit for bit; the bytes grow with the clients")
      ->check(CLI::IsMember({kRecompressMode, kForwardMode}))
      ->default_str(kRecompressMode);
}

void CheckTogether(const RelayOptions& options) {
  if (options.rounds.quorum > options.rounds.clients) throw CLI::ValidationError("--quorum", "is more than --clients");
  if (options.rounds.forwards && options.rounds.clients > kMostBundled) {
    throw CLI::ValidationError("--mode", absl::StrCat("forward takes at most ", kMostBundled, " --clients"));
  }
  if (options.above.name.empty() && options.below.transport.tls_directory.empty()) throw CLI::RequiredError("--name");
  if (!options.above.name.empty() && !CheckClientName(options.above.name).ok()) {
    throw CLI::ValidationError("--name", std::string(CheckClientName(options.above.name).message()));
  }
}

}  // namespace

int ParseRelayOptions(int argc, char** argv, RelayOptions* options) {
  CLI::App app(
      "Stands between a coordinator and some of its clients: their updates go up as one, and models come down.");
  app.name("terse-relay");
  app.set_version_flag("--version", kVersion);
  AddUpstreamOptions(app, &options->above);
  app.add_option("--state", options->below.state_directory, "directory that holds the relay's state and its run")
      ->required();
  AddStoreOptions(app, "relay", "the relay's state and its run", &options->below);
  AddRoundOptions(app, &options->rounds);
  AddServingOptions(app, &options->below);
  AddLogOptions(app, kRelayLogs, &options->below.log);
  app.footer(
      "Exit codes: 0 ended in order, by a signal or an operator; 1 failed: the reason is in the log; 2 wrong usage.");
  AddManFlag(app, kDaemons);
  app.callback([options] { CheckTogether(*options); });
  if (const absl::optional<int> code = ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  DaemonOptions& above = options->above;
  above.transport.tls_directory = options->below.transport.tls_directory;
  above.transport.insecure = options->below.transport.insecure;
  above.transport.relay = options->below.transport.relay = true;
  return -1;
}

}  // namespace terse
