#include "tersectl/cli.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tersectl/completion.h"
#include "tersectl/doctor.h"
#include "tersectl/enrolment_commands.h"
#include "tersectl/invocation.h"
#include "tersectl/man_page.h"
#include "tersectl/pki_commands.h"
#include "tersectl/run_group.h"
#include "core/cli/checks.h"
#include "core/cli/command_line.h"
#include "core/host_port.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "core/version.h"
#include "security/connection_failure.h"
#include "security/invitation_book.h"

namespace terse {
namespace {

void AddClients(CLI::App& app, Invocation* invocation) {
  CommandOptions& options = invocation->options;
  CLI::App* clients = AddRemote(app, "clients", "Clients that ever checked in", ShowClients, invocation);
  CLI::Option* set_aside =
      clients->add_option("--set-aside", options.set_aside, "Give no work to the client of this name for a time");
  clients->add_option("--readmit", options.readmit, "Let the client of this name take part again")->excludes(set_aside);
  clients->add_option("--for", options.set_aside_seconds, "Seconds that it is set aside")
      ->check(NumberAboveZero())
      ->needs(set_aside)
      ->capture_default_str();
  clients->add_option("--reason", options.reason, "Why, for those who ask")->needs(set_aside);
}

void AddBackups(CLI::App& app, Invocation* invocation) {
  CommandOptions& options = invocation->options;
  CLI::App* backup = AddRemote(app, "backup", "Copy the run, while it goes on", BackUp, invocation);
  backup->add_option("--out", options.directory, "Directory to make")->required();
  CLI::App* restore =
      AddLocal(app, "restore", "Make a run of a backup, while no coordinator runs", Restore, invocation);
  restore->add_option("BACKUP", options.backup, "Directory that `backup` made")->required();
  restore->add_option("--state", options.state_directory, "The coordinator's state directory")->required();
  restore->add_flag("--force", options.force, "Replace a run of that name, which is kept as NAME.before-restore");
}

void AddPatience(CLI::App* command, double* seconds) {
  command->add_option("--patience", *seconds, "Seconds that the coordinator may be away")
      ->check(Number(0))
      ->capture_default_str();
}

void AddQueries(CLI::App& app, Invocation* invocation) {
  CommandOptions& options = invocation->options;
  CLI::App* rounds = AddRemote(app, "rounds", "Rounds with loss, accuracy, bytes and times", ShowRounds, invocation);
  rounds->add_option("--first", options.first, "First round")->check(WholeNumber());
  rounds->add_option("--last", options.last, "Last round; 0: the newest")->check(WholeNumber());
  rounds->add_option("--newest", options.newest, "Only the newest so many; 0: all")->check(WholeNumber());
  rounds->add_flag("--csv", options.csv, "Comma-separated, every field");
  rounds->add_flag("--why", options.why, "What the run's controller decided for each round, and why");
  AddClients(app, invocation);
  CLI::App* events =
      AddRemote(app, "events", "What happened: joins, aborts, rejections, resets", ShowEvents, invocation);
  events->add_option("--newest", options.newest_events, "The newest so many")
      ->check(WholeNumber(1, 10000))
      ->capture_default_str();
  events->add_flag("-f,--follow", options.follow, "Go on with what happens from now on, until the run ends");
  AddPatience(events, &options.patience_seconds);
  CLI::App* audit = AddRemote(app, "audit", "Who did what and who was refused, of all runs", ShowAudit, invocation);
  audit->add_option("--newest", options.newest_records, "The newest so many")
      ->check(WholeNumber(1, 10000))
      ->capture_default_str();
  CLI::App* ledger = AddRemote(app, "ledger", "Bytes by round, client and direction", ShowLedger, invocation);
  ledger->add_option("--first", options.first, "First round")->check(WholeNumber());
  ledger->add_option("--last", options.last, "Last round; 0: the newest")->check(WholeNumber());
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
  CommandOptions& options = invocation->options;
  CLI::App* config = AddLocal(app, "config", "Every key of a run file: type, default, what is allowed, what it does",
                              ShowConfigReference, invocation);
  CLI::Option* key = config->add_option("KEY", options.config_key, "Only this key, or the keys of this table");
  config->add_flag("--markdown", options.markdown, "As a document: docs/RUN_FILE.md")->excludes(key);
}

void AddActions(CLI::App& app, Invocation* invocation) {
  CommandOptions& options = invocation->options;
  CLI::App* watch =
      AddRemote(app, "watch", "A view of the run on the whole terminal until it ends", WatchRun, invocation);
  watch->add_flag("--lines", options.lines,
                  "A line for every settled round instead, as without a terminal and with --json");
  watch->add_option("--first", options.first, "Lines from this round on; default: ten rounds back")
      ->check(WholeNumber());
  AddPatience(watch, &options.patience_seconds);
  CLI::App* files =
      AddRemote(app, "export", "Write the model and the report of the run as files", ExportFiles, invocation);
  files->add_option("--out", options.directory, "Directory to write to")->required();
  AddFormat(files, &options.format);
  AddConfig(app, invocation);
}

const char* const kRoles[] = {"coordinator", "client", "observer", "operator"};

// An option that may be given several times.
void AddList(CLI::App* command, const char* name, std::vector<std::string>* list, const char* help) {
  command->add_option(name, *list, help)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Adds the options that say for whom a certificate is.
void AddSubject(CLI::App* command, PkiOptions* options) {
  command->add_option("ROLE", options->role, "coordinator, client, observer or operator")
      ->required()
      ->check(OneOf({std::begin(kRoles), std::end(kRoles)}));
  command->add_option("NAME", options->name, "Its name; a client's is that of terse-client --name")->required();
  AddList(command, "--host", &options->hosts,
          "DNS name or IP address under which a coordinator is reached; repeatable");
  command->add_flag("--renew", options->renew, "Keep the key that is in the folder");
}

void AddDays(CLI::App* command, int64_t* days) {
  command->add_option("--days", *days, "Days that it is valid")->check(WholeNumber(1, 36500))->capture_default_str();
}

void AddEnrolment(CLI::App& pki, Invocation* invocation) {
  PkiOptions* const options = &invocation->options.pki;
  CLI::App* invite = AddLocal(pki, "invite", "Let clients enrol themselves, with a file", InviteClients, invocation);
  invite->add_option("--address", options->address, "host:port where they reach `serve`")
      ->required()
      ->check(DialAddress());
  invite->add_option("--out", options->out, "The file to write: give it to the devices, and to nobody else")
      ->required();
  invite->add_option("--guests", options->guests, "How many clients may come by it")
      ->check(WholeNumber(1, kMostGuests))
      ->capture_default_str();
  invite->add_option("--hours", options->open_hours, "How long they may come")
      ->check(Number(0.01, 87600.0))
      ->capture_default_str();
  AddList(invite, "--names", &options->patterns,
          "Pattern of their names, where * is any text; repeatable; default: any");
  AddDays(invite, &options->days);
  AddLocal(pki, "invitations", "The invitations, and how many came by them", ListInvitations, invocation);
  CLI::App* withdraw =
      AddLocal(pki, "withdraw", "Let nobody more come by an invitation", WithdrawInvitation, invocation);
  withdraw->add_option("ID", options->invitation, "As `invitations` lists it")->required();
  CLI::App* serve =
      AddLocal(pki, "serve", "Answer those who have an invitation, until Ctrl-C", ServeEnrolment, invocation);
  serve->add_option("--listen", options->listen, "Address to listen on")->check(ListenAddress())->capture_default_str();
  AddList(serve, "--host", &options->hosts, "DNS name or IP address under which devices reach it; repeatable");
  CLI::App* enrol =
      AddLocal(pki, "enrol", "On a device: a key, and a certificate by invitation", EnrolDevice, invocation);
  enrol->add_option("NAME", options->name, "The client's name")->required();
  enrol->add_option("--invitation", options->invitation, "The file that `invite` wrote")->required();
  enrol->add_option("--out", options->out, "TLS folder to write to")->required();
}

void AddPki(CLI::App& app, Invocation* invocation) {
  PkiOptions* const options = &invocation->options.pki;
  CLI::App* pki = app.add_subcommand("pki", "The fleet's certificates (docs/SECURITY.md)");
  pki->require_subcommand(1);
  pki->add_option("--pki", options->authority, "The authority's folder")->capture_default_str();
  CLI::App* init = AddLocal(*pki, "init", "Make an authority", InitAuthority, invocation);
  init->add_option("--name", options->authority_name, "Its name")->capture_default_str();
  AddDays(init, &options->authority_days);
  CLI::App* issue = AddLocal(*pki, "issue", "Make a key and its certificate", IssueCertificate, invocation);
  AddSubject(issue, options);
  AddDays(issue, &options->days);
  issue->add_option("--out", options->out, "TLS folder to write to")->required();
  CLI::App* request =
      AddLocal(*pki, "request", "Make a key here and a request for the authority", RequestCertificate, invocation);
  AddSubject(request, options);
  request->add_option("--out", options->out, "TLS folder to write to")->required();
  CLI::App* sign = AddLocal(*pki, "sign", "Sign a request that `request` made", SignRequest, invocation);
  sign->add_option("FILE", options->request, "The request")->required();
  AddDays(sign, &options->days);
  sign->add_option("--role", options->role, "The role that it asks for; needed for others than clients")
      ->check(OneOf({std::begin(kRoles), std::end(kRoles)}));
  sign->add_option("--out", options->out, "Folder to write to")->required();
  CLI::App* revoke = AddLocal(*pki, "revoke", "Take certificates back", RevokeCertificates, invocation);
  revoke->add_option("SERIAL|NAME", options->name, "One certificate, or all valid ones of a name")->required();
  AddList(revoke, "--into", &options->into, "A coordinator's TLS folder that gets the new list; repeatable");
  CLI::App* list = AddLocal(*pki, "list", "The certificates that were issued", ListCertificates, invocation);
  list->add_flag("--revoked", options->revoked, "Only those that were taken back");
  AddEnrolment(*pki, invocation);
}

absl::Status PrintCompletion(const CLI::App& app, const CommandOptions& options, const Terminal& terminal) {
  *terminal.out << (options.shell == "zsh" ? ZshCompletion(app) : BashCompletion(app));
  return absl::OkStatus();
}

absl::Status PrintManPage(const CLI::App& app, const CommandOptions&, const Terminal& terminal) {
  *terminal.out << ManPage(app);
  return absl::OkStatus();
}

void AddHelpers(CLI::App& app, Invocation* invocation) {
  CommandOptions& options = invocation->options;
  CLI::App* doctor =
      AddLocal(app, "doctor", "Check what may keep the fleet from working, and say what to do", Diagnose, invocation);
  CLI::Option* pki =
      doctor->add_option("--pki", options.authority_directory,
                         "The authority's folder: does the coordinator have its newest revocation list?");
  doctor
      ->add_option("--state", options.state_directory,
                   "Look at this state directory, a coordinator's or a client's, and ask no coordinator")
      ->excludes(pki);
  CLI::App* completion = app.add_subcommand("completion", "Completion of this command line, for a shell to source");
  completion->callback([=] { invocation->of_itself = PrintCompletion; });
  completion->add_option("SHELL", options.shell, "bash or zsh")->required()->check(OneOf({"bash", "zsh"}));
  app.add_subcommand("man", "The manual page tersectl(1), for troff")->callback([=] {
    invocation->of_itself = PrintManPage;
  });
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
  AddPki(app, invocation);
  AddHelpers(app, invocation);
  AddHelpCommand(app);
}

absl::Status Dispatch(const CLI::App& app, const Invocation& invocation, const Terminal& terminal) {
  if (invocation.of_itself != nullptr) return invocation.of_itself(app, invocation.options, terminal);
  if (invocation.local != nullptr) return invocation.local(invocation.options, terminal);
  TERSE_ASSIGN_OR_RETURN(AdminClient client,
                         AdminClient::Make(invocation.options.coordinator,
                                           absl::Seconds(invocation.options.timeout_seconds), invocation.options.run));
  return invocation.remote(client, invocation.options, terminal);
}

// Not when the command line is read: TERSE_ADMIN must not keep commands on files from working.
absl::Status CheckAdminAddress(const std::string& address) {
  return IsUnixSocket(address) ? absl::OkStatus() : CheckDialAddress(address);
}

int ExitCode(const absl::Status& status, const Invocation& invocation) {
  if (status.ok()) return kExitOk;
  const bool compares = invocation.local == CompareRuns;
  if ((invocation.remote != nullptr || compares) && absl::IsUnavailable(status)) return kExitUnreachable;
  const bool validates = invocation.local == ValidateRunFile || invocation.remote == CreateRun || compares;
  if (validates && absl::IsInvalidArgument(status)) return kExitInvalidRun;
  // As diff(1): 1 means that they differ, and only that.
  return compares && !absl::IsAborted(status) ? kExitUsage : kExitFailed;
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
  const absl::Status status = Dispatch(app, invocation, terminal);
  terminal.out->flush();
  if (!status.ok()) *terminal.err << "tersectl: " << PlainLines(status.message()) << "\n";
  return ExitCode(status, invocation);
}

}  // namespace terse
