#include "tersectl/cli.h"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/cli/man_page.h"
#include "core/host_port.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "core/version.h"
#include "security/connection_failure.h"
#include "tersectl/completion.h"
#include "tersectl/doctor.h"
#include "tersectl/follow_group.h"
#include "tersectl/invocation.h"
#include "tersectl/lists.h"
#include "tersectl/pki_group.h"
#include "tersectl/run_group.h"

namespace terse {
namespace {

void AddClients(CLI::App& app, Invocation* invocation) {
  const auto [clients, options] = AddRemote(app, "clients", "Clients that ever checked in", ShowClients, invocation);
  CLI::Option* set_aside =
      clients->add_option("--set-aside", options->set_aside, "Give no work to the client of this name for a time");
  clients->add_option("--readmit", options->readmit, "Let the client of this name take part again")
      ->excludes(set_aside);
  clients->add_option("--for", options->set_aside_seconds, "Seconds that it is set aside")
      ->check(NumberAboveZero())
      ->needs(set_aside)
      ->capture_default_str();
  clients->add_option("--reason", options->reason, "Why, for those who ask")->needs(set_aside);
  AddListOptions(clients, &options->list, ClientList().Heads());
}

void AddBackups(CLI::App& app, Invocation* invocation) {
  const auto [backup, copy] = AddRemote(app, "backup", "Copy the run, while it goes on", BackUp, invocation);
  backup->add_option("--out", copy->directory, "Directory to make, or s3://BUCKET/NAME")->required();
  const auto [restore, options] =
      AddLocal(app, "restore", "Make a run of a backup, while no coordinator runs", Restore, invocation);
  restore->add_option("BACKUP", options->backup, "Directory or s3://BUCKET/NAME that `backup` made")->required();
  restore->add_option("--state", options->state_directory, "The coordinator's state directory")->required();
  restore->add_flag("--force", options->force, "Replace a run of that name, which is kept as NAME.before-restore");
}

void AddPatience(CLI::App* command, double* seconds) {
  command->add_option("--patience", *seconds, "Seconds that the coordinator may be away")
      ->check(Number(0))
      ->capture_default_str();
}

void AddRounds(CLI::App& app, Invocation* invocation) {
  const auto [rounds, options] =
      AddRemote(app, "rounds", "Rounds with loss, accuracy, bytes and times", ShowRounds, invocation);
  rounds->add_option("--first", options->first, "First round")->check(WholeNumber());
  rounds->add_option("--last", options->last, "Last round; 0: the newest")->check(WholeNumber());
  rounds->add_option("--newest", options->newest, "Only the newest so many; 0: all")->check(WholeNumber());
  rounds->add_flag("--csv", options->csv, "Comma-separated, every field");
  rounds->add_flag("--why", options->why, "What the run's controller decided for each round, and why");
  AddListOptions(rounds, &options->list, RoundList().Heads());
}

void AddMetrics(CLI::App& app, Invocation* invocation) {
  const auto [metrics, options] = AddRemote(app, "metrics", "Figures by name that clients and the evaluator report",
                                            ShowMetrics, invocation, kMetricsCodes);
  metrics->add_option("--first", options->first, "First round")->check(WholeNumber());
  metrics->add_option("--last", options->last, "Last round; 0: the newest")->check(WholeNumber());
  metrics->add_option("--newest", options->newest, "Only the newest so many; 0: all")->check(WholeNumber());
  metrics->add_flag("--clients", options->clients, "Each client's own, in place of the means over clients");
  AddListOptions(metrics, &options->list, {});
}

void AddEvents(CLI::App& app, Invocation* invocation) {
  const auto [events, options] =
      AddRemote(app, "events", "What happened: joins, aborts, rejections, resets", ShowEvents, invocation);
  events->add_option("--newest", options->newest, "The newest so many")
      ->check(WholeNumber(1, 10000))
      ->capture_default_str();
  CLI::Option* follow =
      events->add_flag("-f,--follow", options->follow, "Go on with what happens from now on, until the run ends");
  AddPatience(events, &options->patience_seconds);
  AddListOptions(events, &options->list, EventList().Heads());
  // Those who follow get rows as they come.
  for (const char* name : {"--columns", "--wide", "--sort", "--limit"}) follow->excludes(events->get_option(name));
}

void AddQueries(CLI::App& app, Invocation* invocation) {
  AddRounds(app, invocation);
  AddClients(app, invocation);
  AddEvents(app, invocation);
  const auto [audit, records] =
      AddRemote(app, "audit", "Who did what and who was refused, of all runs", ShowAudit, invocation);
  audit->add_option("--newest", records->newest, "The newest so many")
      ->check(WholeNumber(1, 10000))
      ->capture_default_str();
  AddListOptions(audit, &records->list, AuditList().Heads());
  AddMetrics(app, invocation);
  const auto [ledger, rows] = AddRemote(app, "ledger", "Bytes by round, client and direction", ShowLedger, invocation);
  ledger->add_option("--first", rows->first, "First round")->check(WholeNumber());
  ledger->add_option("--last", rows->last, "Last round; 0: the newest")->check(WholeNumber());
  AddListOptions(ledger, &rows->list, LedgerList().Heads());
  AddRemote(app, "summary", "Accuracy, bytes, compression and time of the whole run", ShowSummary, invocation);
}

void AddFormat(CLI::App* command, ExportFormat* format) {
  static const std::map<std::string, ExportFormat> kFormats = {{"torchscript", ExportFormat::kTorchScript},
                                                               {"state", ExportFormat::kState},
                                                               {"npz", ExportFormat::kNpz},
                                                               {"tensorboard", ExportFormat::kTensorBoard},
                                                               {"all", ExportFormat::kAll}};
  command
      ->add_option_function<std::string>(
          "--format", [format](const std::string& name) { *format = kFormats.at(name); },
          "torchscript (model.pt), state (model.safetensors), npz (model.npz), tensorboard (curves), all")
      ->check(OneOf({"torchscript", "state", "npz", "tensorboard", "all"}))
      ->default_str("all");
}

void AddConfig(CLI::App& app, Invocation* invocation) {
  const auto [config, options] =
      AddLocal(app, "config", "Every key of a run file: type, default, what is allowed, what it does",
               ShowConfigReference, invocation);
  CLI::Option* key = config->add_option("KEY", options->key, "Only this key, or the keys of this table");
  CLI::Option* markdown =
      config->add_flag("--markdown", options->markdown, "As a document: docs/RUN_FILE.md")->excludes(key);
  AddListOptions(config, &options->list, ConfigKeyList().Heads());
  for (const char* name : {"--columns", "--wide", "--sort", "--where", "--limit"}) {
    markdown->excludes(config->get_option(name));
  }
}

void AddActions(CLI::App& app, Invocation* invocation) {
  const auto [watch, view] =
      AddRemote(app, "watch", "A view of the run on the whole terminal until it ends", WatchRun, invocation);
  watch->add_flag("--lines", view->lines,
                  "A line for every settled round instead, as without a terminal and with --json");
  watch->add_option("--first", view->first, "Lines from this round on; default: ten rounds back")->check(WholeNumber());
  AddPatience(watch, &view->patience_seconds);
  const auto [files, options] =
      AddRemote(app, "export", "Write the model and the report of the run as files", ExportFiles, invocation);
  files->add_option("--out", options->directory, "Directory to write to")->required();
  AddFormat(files, &options->format);
  AddConfig(app, invocation);
}

void AddCompletion(CLI::App& app, Invocation* invocation) {
  CLI::App* const completion =
      app.add_subcommand("completion", "Completion of this command line, for a shell to source");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash or zsh")->required()->check(OneOf({"bash", "zsh"}));
  completion->callback([=, &app] {
    invocation->local = [=, &app](const CommandOptions&, const Terminal& terminal) {
      *terminal.out << (*shell == "zsh" ? ZshCompletion(app) : BashCompletion(app));
      return absl::OkStatus();
    };
  });
}

void AddManPage(CLI::App& app, Invocation* invocation) {
  app.add_subcommand("man", "The manual page tersectl(1), for troff")->callback([=, &app] {
    invocation->local = [&app](const CommandOptions&, const Terminal& terminal) {
      *terminal.out << ManPage(app, kUserCommands);
      return absl::OkStatus();
    };
  });
}

void AddHelpers(CLI::App& app, Invocation* invocation) {
  const auto [doctor, options] =
      AddLocal(app, "doctor", "Check what may keep the fleet from working, and say what to do", Diagnose, invocation);
  CLI::Option* pki =
      doctor->add_option("--pki", options->authority_directory,
                         "The authority's folder: does the coordinator have its newest revocation list?");
  doctor
      ->add_option("--state", options->state_directory,
                   "Look at this state directory, a coordinator's or a client's, and ask no coordinator")
      ->excludes(pki);
  AddCompletion(app, invocation);
  AddManPage(app, invocation);
}

void Configure(CLI::App& app, Invocation* invocation) {
  app.name("tersectl");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", kVersion);
  app.add_option("--admin", invocation->options.coordinator.address,
                 "Address of the coordinator's admin service: unix:PATH or host:port")
      ->envname("TERSE_ADMIN")
      ->capture_default_str();
  TransportOptions& transport = invocation->options.coordinator.transport;
  CLI::Option* tls = app.add_option("--tls", transport.tls_directory,
                                    "Folder with an operator's or an observer's certificate, for host:port")
                         ->envname("TERSE_TLS");  // unchecked: commands on files must not fail for its sake
  app.add_option("--server-name", transport.server_name,
                 "Host in the coordinator's certificate, where --admin has another")
      ->needs(tls);
  app.add_flag("--insecure", transport.insecure,
               "Talk in cleartext to another machine too, because something else protects the network")
      ->excludes(tls);
  app.add_option("--timeout", invocation->options.timeout_seconds, "Seconds to wait for an answer")
      ->check(Number(0.001, 86400.0))
      ->capture_default_str();
  app.add_option("--run", invocation->options.run, "Which run; needed when the coordinator has several")
      ->type_name(kRunType);
  app.add_flag("--json", invocation->options.json, "JSON for programs");
  app.footer("Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 coordinator not reachable, 4 invalid run file.");
  AddRuns(app, invocation);
  AddQueries(app, invocation);
  AddBackups(app, invocation);
  AddActions(app, invocation);
  AddFollow(app, invocation);
  AddPki(app, invocation);
  AddHelpers(app, invocation);
  AddHelpCommand(app);
}

absl::Status Dispatch(const Invocation& invocation, const Terminal& terminal) {
  const CommandOptions& options = invocation.options;
  if (invocation.local != nullptr) return invocation.local(options, terminal);
  TERSE_ASSIGN_OR_RETURN(AdminClient client,
                         AdminClient::Make(options.coordinator, absl::Seconds(options.timeout_seconds), options.run));
  return invocation.remote(client, options, terminal);
}

// Not when the command line is read: TERSE_ADMIN must not keep commands on files from working.
absl::Status CheckAdminAddress(const std::string& address) {
  return IsUnixSocket(address) ? absl::OkStatus() : CheckDialAddress(address);
}

}  // namespace

int RunTersectl(int argc, const char* const* argv, const Terminal& terminal) {
  Invocation invocation;
  CLI::App app("Looks at a Terse coordinator, and steers, exports and backs up its runs");
  Configure(app, &invocation);
  const absl::optional<int> ended = ReadCommandLine(app, argc, argv, *terminal.out, *terminal.err);
  if (ended.has_value()) return *ended;
  QuietGrpc();
  const std::string& address = invocation.options.coordinator.address;
  if (const absl::Status usage = invocation.remote == nullptr ? absl::OkStatus() : CheckAdminAddress(address);
      !usage.ok()) {
    *terminal.err << "tersectl: --admin: " << usage.message() << "\n";
    return kExitUsage;
  }
  const absl::Status status = Dispatch(invocation, terminal);
  terminal.out->flush();
  if (!status.ok()) *terminal.err << "tersectl: " << PlainLines(status.message()) << "\n";
  return invocation.exit_codes.Of(status);
}

}  // namespace terse
