// The command line of terse-coordinator, as server.h declares it.
#include "coordinator/rpc/server_options.h"

#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/evaluator_setup.h"
#include "coordinator/rpc/model_sandbox.h"
#include "coordinator/rpc/server.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/log_options.h"
#include "core/cli/man_page.h"
#include "core/version.h"

namespace terse {

void AddServingOptions(CLI::App& app, CoordinatorOptions* options) {
  app.add_option("--listen", options->listen, "address for clients; port 0 takes a free one")
      ->check(ListenAddress(UnixSockets::kAllowed))
      ->capture_default_str();
  app.add_option("--admin", options->admin,
                 absl::StrCat("address for operators: host:port, or unix:PATH [unix:STATE/", kAdminSocket, "]"))
      ->check(ListenAddress(UnixSockets::kAllowed));
  app.add_option(
         "--http", options->http,
         "address of the dashboard, its JSON API and the metrics, for example 127.0.0.1:7780; without it there is none")
      ->check(ListenAddress());
  CLI::Option* tls = app.add_option("--tls", options->transport.tls_directory,
                                    "folder with this coordinator's certificate, which `tersectl pki issue` makes: "
                                    "connections over TCP then need certificates on both ends")
                         ->check(ExistingFolder());
  app.add_option("--max-connections", options->max_connections,
                 "of clients at a time; those beyond are reset. 0: as many as the system lets the process open files "
                 "for, less some for itself")
      ->check(WholeNumber(0, 1'000'000))
      ->capture_default_str();
  app.add_option(
         "--max-connections-per-address", options->max_connections_per_address,
         "of these from one IP address, or one IPv6 network of 64 bits, other than this machine; 0: half of them")
      ->check(WholeNumber(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--calls-per-minute", options->budgets.calls_per_minute,
                 "of one client with a certificate: each connection's session, each download")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--calls-at-once", options->budgets.calls_at_once, "of one client with a certificate")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--sessions-at-once", options->budgets.sessions_at_once,
                 "of one client with a certificate, among its calls: those that it has given up count until they end")
      ->check(WholeNumber(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--unread-timeout", options->unread_timeout_seconds,
                 "seconds that a client may leave what it is sent unread; then its session or download ends, and it "
                 "comes back by itself")
      ->check(Number(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--bytes-per-minute", options->budgets.bytes_per_minute,
                 "of one client with a certificate, both ways: 5MB, for example; who needs more waits. 0: no bound")
      ->transform(AmountOfBytes())
      ->capture_default_str();
  app.add_flag("--insecure", options->transport.insecure,
               "listen in cleartext for other machines too, because something else protects the network")
      ->excludes(tls);
  app.add_option(
         "--keepalive", options->keepalive_seconds,
         "seconds of silence after which a connection is probed; clients may probe twice as often, and every 2.5 "
         "seconds in any case")
      ->check(Number(kLeastKeepaliveSeconds, 86400.0))
      ->capture_default_str();
  app.add_option("--audit-file", options->audit_file,
                 "file to append the audit log to, a JSON object a line; `tersectl audit` shows it without");
  app.add_option("--ready-file", options->ready_file, "JSON file to write once all addresses are served");
}

void AddStoreOptions(CLI::App& app, absl::string_view who, absl::string_view what, CoordinatorOptions* options) {
  app.add_option("--store", options->store,
                 absl::StrCat("PostgreSQL database that keeps ", what,
                              ", instead of --state, which then has only what can be made anew: "
                              "postgresql://USER@HOST/DATABASE, or service=NAME; the password is in ~/.pgpass or a "
                              "service file"));
  app.add_option("--lease", options->lease_seconds,
                 absl::StrCat("seconds for which the ", who,
                              " that serves the runs of --store may be silent until another one that waits takes them "
                              "over"))
      ->check(Number(0.5, 3600.0))
      ->capture_default_str();
}

int ParseCoordinatorOptions(int argc, char** argv, CoordinatorOptions* options) {
  CLI::App app("Runs the rounds of one federated training run.");
  app.name("terse-coordinator");
  app.set_version_flag("--version", kVersion);
  CLI::Option* run_files =
      app.add_option("--run-file", options->run_files,
                     "TOML file of a run, may be given several times; without it, every run in --state goes on")
          ->check(ExistingFile());
  const CLI::Option* state = app.add_option("--state", options->state_directory,
                                            "directory that holds the runs; required unless --check is given");
  AddStoreOptions(app, "coordinator", "the runs", options);
  const CLI::Option* check = app.add_flag("--check", options->check,
                                          "only say whether the runs of --run-file could be served with the data of "
                                          "--data: sizes, models and codecs are checked as at a first start, and "
                                          "nothing is kept")
                                 ->needs(run_files);
  app.final_callback([state, check] {
    if (state->count() + check->count() == 0) throw CLI::RequiredError("--state");
  });
  app.add_option("--data", options->data_directory,
                 "directory of the data set for evaluation; without it, an embedded one")
      ->check(ExistingFolder());
  AddServingOptions(app, options);
  app.add_option(
         "--trace-rounds", options->trace_rounds,
         "newest rounds of each run of which to keep, in memory, when each client got its work, sent its update "
         "and heard of it, for `tersectl follow --otlp`; 0: none")
      ->check(WholeNumber(0, 100000))
      ->capture_default_str();
  AddModelOptions(app, options);
  AddEvaluatorOptions(app, options);
  AddLogOptions(app, kCoordinatorLogs, &options->log);
  app.footer(
      "Exit codes: 0 ended in order, by a signal or an operator; 1 failed: the reason is in the log; 2 wrong usage.");
  AddManFlag(app, kDaemons);
  if (const absl::optional<int> code = ReadCommandLine(app, argc, argv); code.has_value()) return *code;
  options->command_line.assign(argv, argv + argc);
  // Where it fails, the coordinator says why.
  if (!options->sandboxed.empty() && !EnterModelSandbox(*options).ok()) return EXIT_FAILURE;
  return -1;
}

}  // namespace terse
