#include "client/rpc/daemon.h"

#include <atomic>
#include <csignal>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/log_components.h"
#include "client/rpc/enrol_once.h"
#include "client/rpc/sandbox_setup.h"
#include "client/rpc/trainer_setup.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/log_options.h"
#include "core/cli/man_page.h"
#include "core/log/log_details.h"
#include "core/session_messages.h"
#include "core/status.h"
#include "core/version.h"
#include "net/open_files.h"
#include "proto/keepalive.h"
#include "sandbox/sandbox.h"
#include "security/connection_failure.h"
#include "security/tls_directory.h"
#include "security/transport.h"
#include "storage/module_file.h"
#include "web/http_server.h"

namespace terse {
namespace {

std::atomic<bool> stop_requested{false};

void OnSignal(int) { stop_requested.store(true); }

// A client's certificate is none that a server could show, so there is no HTTPS here.
void CheckMetricsAddress(const DaemonOptions& options) {
  if (options.metrics.empty()) return;
  if (options.transport.insecure || IsLocalAddress(options.metrics)) return;
  throw CLI::ValidationError(
      "--metrics", absl::StrCat("other machines would read ", options.metrics,
                                " in cleartext: take a loopback address, such as 127.0.0.1:7781, and scrape it from "
                                "this machine or through a tunnel; or --insecure if something else protects the "
                                "network"));
}

// Checks what a parser of options cannot: which options need or exclude each other.
void CheckTogether(const DaemonOptions& options) {
  if (options.trainer.any() && (options.sandbox || !options.data_directory.empty())) {
    throw CLI::ValidationError(options.sandbox ? "--sandbox" : "--data",
                               "is for the models of Terse's own; leave it away, or the options of the trainer");
  }
  if (options.sandbox && options.device == "cuda") {
    throw CLI::ValidationError("--sandbox", "takes the graphics card away; leave it or --device cuda away");
  }
  const std::string& folder = options.transport.tls_directory;
  if (options.invitation.empty() && !folder.empty() && !ExistingFolder()(folder).empty()) {
    throw CLI::ValidationError("--tls",
                               absl::StrCat("there is no folder '", folder,
                                            "'; give the one that `tersectl pki issue` wrote, or --enrol FILE, "
                                            "which makes it"));
  }
  if (options.name.empty() && folder.empty()) throw CLI::RequiredError("--name");
  CheckMetricsAddress(options);
}

void AddTrainerOptions(CLI::App* app, DaemonOptions* options) {
  TrainerOptions& trainer = options->trainer;
  CLI::Option* command =
      app->add_option("--trainer", trainer.command,
                      "command that starts a trainer of your own, which speaks the trainer protocol (docs/TRAINER.md)");
  CLI::Option* socket = app->add_option("--trainer-socket", trainer.socket,
                                        "path of a Unix socket at which to wait for a trainer of your own");
  // The package for Python gives it, not people.
  app->add_option("--trainer-fd", trainer.inherited)->group("")->check(WholeNumber(3, 1 << 20));
  command->excludes(socket);
  app->add_option("--trainer-seconds", trainer.seconds,
                  "seconds that a round's training, or the start of a trainer of your own, may take")
      ->check(Number(0.1, 2592000.0))
      ->capture_default_str();
}

void AddSandboxOptions(CLI::App* app, DaemonOptions* options) {
  CLI::Option* sandbox = app->add_flag(
      "--sandbox", options->sandbox,
      "train in a process of its own, on the CPU: without network, programs, and files beyond --data and the system's");
  app->add_option("--sandbox-memory", options->sandbox_memory_mb, "MB that it may take beyond the program itself")
      ->needs(sandbox)
      ->check(WholeNumber(64, 1 << 24))
      ->capture_default_str();
  app->add_option("--sandbox-seconds", options->sandbox_seconds,
                  "seconds that a round's training, or reading the data, may take")
      ->needs(sandbox)
      ->check(Number(1.0, 604800.0))
      ->capture_default_str();
  // The daemon gives it, not people.
  app->add_option(kSandboxFlag, options->sandbox_trainer)
      ->group("")
      ->needs(sandbox)
      ->check(OneOf({kOwnNetwork, kSharedNetwork}));
}

}  // namespace

absl::Status CheckWhoIAm(DaemonOptions* options) {
  const Role role = RoleWith(options->transport, Role::kClient);
  for (const std::string& coordinator : options->coordinators) {
    TERSE_RETURN_IF_ERROR(CheckConnectWith(options->transport, coordinator, {role}));
  }
  if (!options->transport.tls_directory.empty()) {
    TERSE_ASSIGN_OR_RETURN(const TlsDirectory tls, ReadTlsDirectory(options->transport.tls_directory, {role}));
    const std::string& certified = tls.certificate.identity.name;
    if (options->name.empty()) options->name = certified;
    if (options->name != certified) {
      return absl::FailedPreconditionError(
          absl::StrCat("the certificate in ", tls.path, " is for '", certified, "'; leave --name away or correct it"));
    }
  }
  return CheckClientName(options->name);
}

int ParseDaemonOptions(int argc, char** argv, DaemonOptions* options) {
  CLI::App app("Trains on this machine's data and streams compressed updates to a coordinator.");
  app.name("terse-client");
  app.set_version_flag("--version", kVersion);
  app.add_option("--coordinator", options->coordinators,
                 "host:port of the coordinator; with commas between them, of several that share their runs: the client "
                 "goes on to the next when one does not serve")
      ->required()
      ->delimiter(',')
      ->check(DialAddress(UnixSockets::kAllowed));
  app.add_option("--name", options->name,
                 "name of this client, unique in the fleet; with --tls, that of its certificate");
  CLI::Option* tls = app.add_option("--tls", options->transport.tls_directory,
                                    "folder with this client's certificate, which `tersectl pki` or --enrol makes");
  app.add_option(
         "--enrol", options->invitation,
         "invitation (`tersectl pki invite`) with which to get a certificate, as long as --tls has none; without "
         "--name, under the machine's host name")
      ->needs(tls);
  app.add_option("--server-name", options->transport.server_name,
                 "host in the coordinator's certificate, where --coordinator has another")
      ->needs(tls);
  app.add_flag("--insecure", options->transport.insecure,
               "talk in cleartext to other machines too, because something else protects the network")
      ->excludes(tls);
  app.add_option("--state", options->state_directory, "directory that keeps the residual and the optimizer's state")
      ->required();
  app.add_option("--run", options->run, "run to join; needed when the coordinator serves several");
  app.add_option(
         "--allow-model", options->allow_models,
         "SHA-256 of a TorchScript model that this client may train, as `tersectl run create` prints it; may be "
         "given several times. Others are refused: such a model is code")
      ->check([](const std::string& hash) {
        return IsModuleHash(hash) ? "" : "'" + hash + "' is no SHA-256: 64 digits 0-9 and a-f";
      });
  app.add_flag("--reset-state", options->reset_state,
               "when --state is damaged, remove what is in it and start afresh; the lost residual is counted");
  app.add_option("--data", options->data_directory, "directory of the data set; without it, an embedded one")
      ->check(ExistingFolder());
  app.add_option("--device", options->device, "where to train")
      ->check(OneOf({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  AddTrainerOptions(&app, options);
  AddSandboxOptions(&app, options);
  app.add_option("--threads", options->threads, "threads of LibTorch")
      ->check(WholeNumber(1, 1024))
      ->capture_default_str();
  app.add_option("--reconnect-after", options->first_backoff_seconds,
                 "seconds from a lost connection to the next attempt; doubles up to 60 while attempts fail, and with "
                 "several addresses up to 4 in the first two minutes")
      ->check(Number(0.001, 60.0))
      ->capture_default_str();
  app.add_option("--keepalive", options->keepalive_seconds,
                 "seconds of silence after which the connection is probed; below 5 the coordinator needs it too")
      ->check(Number(kLeastKeepaliveSeconds, 86400.0))
      ->default_str(
          absl::StrCat(kDefaultKeepaliveSeconds, ", or ", kSeveralKeepaliveSeconds, " with several addresses"));
  app.add_option("--metrics", options->metrics,
                 "host:port where this client's metrics are served at /metrics, for Prometheus; without it, nowhere")
      ->check(ListenAddress());
  AddLogOptions(app, kClientLogs, &options->log);
  app.footer(
      "Exit codes: 0 the run is over, or a signal ended this client in order; 1 failed: the reason is in the log; "
      "2 wrong usage.");
  AddManFlag(app, kDaemons);
  app.callback([&] { CheckTogether(*options); });
  if (const absl::optional<int> code = ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  options->command_line.assign(argv, argv + argc);
  if (options->sandbox) options->device = "cpu";
  if (!options->sandbox_trainer.empty() && !EnterSandbox(*options).ok()) return kExitFailed;  // the daemon says why
  return -1;
}

int RunDaemon(DaemonOptions options, absl::StatusOr<TrainerFactory> make_trainer) {
  // Without trainers there, the daemon has none either, and says why.
  if (!options.sandbox_trainer.empty()) return make_trainer.ok() ? ServeSandbox(*make_trainer) : kExitFailed;
  QuietGrpc();
  ConfigureLog(options.log);
  if (!make_trainer.ok()) {
    Log(LogLevel::kError, kDaemonLog, {{}, 0, options.name}, make_trainer.status().message());
    return kExitFailed;
  }
  if (const absl::StatusOr<int64_t> files = RaiseOpenFiles(); !files.ok()) {
    Log(LogLevel::kWarn, kDaemonLog, {{}, 0, options.name}, files.status().message());
  }
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGPIPE, SIG_IGN);
  if (!options.invitation.empty()) {
    const absl::Status enrolled = EnrolOnce(options, &stop_requested);
    if (absl::IsCancelled(enrolled)) return kExitFinished;
    if (!enrolled.ok()) {
      Log(LogLevel::kError, kEnrolLog, {{}, 0, options.name}, absl::StrCat("cannot enrol: ", enrolled.message()));
      return kExitFailed;
    }
  }
  if (const absl::Status who = CheckWhoIAm(&options); !who.ok()) {
    Log(LogLevel::kError, kDaemonLog, {{}, 0, options.name}, who.message());
    return kExitUsage;
  }
  absl::optional<TrainerWatch> watch;
  if (options.trainer.any()) {
    make_trainer = SetUpTrainer(options, &stop_requested);
    if (!make_trainer.ok()) {
      Log(LogLevel::kError, kDaemonLog, {options.run, 0, options.name}, make_trainer.status().message());
      return kExitFailed;
    }
    if (options.trainer.inherited >= 0) {
      watch.emplace(options.trainer.inherited, &stop_requested);
      AwaitEarlierClient(options.state_directory, stop_requested);
    }
  }
  if (options.sandbox) {
    make_trainer = SetUpSandbox(options, &stop_requested);
    if (!make_trainer.ok()) {
      Log(LogLevel::kError, kDaemonLog, {options.run, 0, options.name},
          absl::StrCat("--sandbox: ", make_trainer.status().message()));
      return kExitFailed;
    }
  }
  Log(LogLevel::kDebug, kDaemonLog, {options.run, 0, options.name},
      absl::StrCat("terse-client ", kVersion, ", state in ", options.state_directory, ", coordinator ",
                   absl::StrJoin(options.coordinators, ",")));
  const absl::Status status = ServeCoordinator(options, *std::move(make_trainer), &stop_requested);
  if (status.ok()) return kExitFinished;
  if (absl::IsCancelled(status)) {
    Log(LogLevel::kInfo, kDaemonLog, {options.run, 0, options.name},
        absl::StrCat("stopped; the state in ", options.state_directory, " is whole"));
    return kExitFinished;
  }
  LogDetails(kDaemonLog, {options.run, 0, options.name}, status);
  Log(LogLevel::kError, kDaemonLog, {options.run, 0, options.name}, status.message());
  return kExitFailed;
}

}  // namespace terse
