// The commands of tersectl. Each asks the coordinator and prints: a table for people, or JSON for programs.
#ifndef TERSE_TERSECTL_COMMANDS_H_
#define TERSE_TERSECTL_COMMANDS_H_

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tersectl/admin_client.h"
#include "tersectl/export.h"
#include "tersectl/list_query.h"

namespace terse {

// Where a command prints.
struct Terminal {
  std::ostream* out = nullptr;  // results
  std::ostream* err = nullptr;  // errors and remarks
  bool color = false;
  std::istream* in = nullptr;  // a person types here; nullptr: nobody does
  bool full_screen = false;    // standard input and output are a terminal that takes ANSI's sequences
  size_t columns = 0;          // of the terminal that standard output is; 0: it is none
};

// The options that every command has. Each command's own derive from it.
struct CommandOptions {
  AdminClient::Peer coordinator = {"unix:/var/lib/terse/admin.sock", {}};
  double timeout_seconds = 30;
  bool json = false;
  std::string run;                // empty: the only one that the coordinator has
  std::string authority = "pki";  // the folder of the authority, for `pki` and its commands
};

// Options of the commands that list something.
struct ListedOptions : CommandOptions {
  ListOptions list;
};

struct RunsOptions : ListedOptions {
  bool names = false;
};

// Options of the commands that look at one run or steer it.
struct SteerOptions : CommandOptions {
  std::string reason;     // pause, abort
  bool shutdown = false;  // stop
};

struct RoundsOptions : ListedOptions {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t newest = 0;
  bool csv = false;
  bool why = false;
};

struct MetricsOptions : ListedOptions {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t newest = 0;
  bool clients = false;
};

struct LedgerOptions : ListedOptions {
  uint64_t first = 0;
  uint64_t last = 0;
};

struct ClientsOptions : ListedOptions {
  std::string set_aside, readmit;  // whom
  double set_aside_seconds = 600;
  std::string reason;
};

// Options of the commands that outlast a restart of the coordinator.
struct FollowOptions : CommandOptions {
  double patience_seconds = 30;  // for which it may be away
};

struct EventsOptions : FollowOptions {
  uint32_t newest = 100;
  bool follow = false;
  ListOptions list;
};

struct WatchOptions : FollowOptions {
  uint64_t first = 0;
  bool lines = false;
};

// Where `follow` hands the news of runs on; what is empty is no place.
struct FollowRunsOptions : CommandOptions {
  absl::optional<double> patience_seconds;  // default: as FollowOptions with a run, and for ever without
  std::string tensorboard;                  // folder
  std::string mlflow, experiment = "terse";
  std::string otlp;
  uint32_t otlp_clients = 100;
  std::vector<std::string> webhooks;
  std::string secret_file;  // of the webhooks' signatures
  std::string state;        // folder with the webhooks' positions
  double lost_after_seconds = 60;
  std::string checkpoints;  // folder or bucket
  uint64_t checkpoint_every = 50;
  int64_t checkpoint_keep = 3;
};

struct AuditOptions : ListedOptions {
  uint32_t newest = 100;
};

struct CreateOptions : CommandOptions {
  std::string file;        // the run file
  std::string model_file;  // TorchScript
  bool paused = false;
};

struct DeleteOptions : CommandOptions {
  bool force = false;
  bool yes = false;  // asks nobody
};

struct DiffOptions : CommandOptions {
  std::string a, b;  // names of runs, or run files
};

struct CompareOptions : CommandOptions {
  std::vector<std::string> runs;   // names of runs, or folders that `export` wrote
  std::vector<double> accuracies;  // to reach; empty: some that all of them reach
  std::string svg;                 // the file to write; empty: none
};

struct BackupOptions : CommandOptions {
  std::string directory;
};

struct RestoreOptions : CommandOptions {
  std::string backup;           // a directory that `backup` wrote
  std::string state_directory;  // the coordinator's
  bool force = false;
};

struct ExportOptions : CommandOptions {
  std::string directory;
  ExportFormat format = ExportFormat::kAll;
};

struct ValidateOptions : CommandOptions {
  std::string file;  // the run file
};

struct ConfigOptions : ListedOptions {
  std::string key;  // or a table; empty: all
  bool markdown = false;
};

// All return the error of AdminClient or of the file system that ended them.
absl::Status ShowStatus(AdminClient& client, const SteerOptions& options, const Terminal& terminal);
// The first of the newest so many rounds, not before `first`; that one where `newest` is 0.
absl::StatusOr<uint64_t> FirstOfNewest(AdminClient& client, uint64_t first, uint64_t newest);
absl::Status ShowRounds(AdminClient& client, const RoundsOptions& options, const Terminal& terminal);
absl::Status ShowClients(AdminClient& client, const ClientsOptions& options, const Terminal& terminal);
// Sets one aside or readmits it, when the command line says so.
absl::Status ChangeClient(AdminClient& client, const ClientsOptions& options, const Terminal& terminal);
// With `follow`, goes on as WatchRun until the run has ended; OUT_OF_RANGE when it was replaced meanwhile.
absl::Status ShowEvents(AdminClient& client, const EventsOptions& options, const Terminal& terminal);
absl::Status ShowAudit(AdminClient& client, const AuditOptions& options, const Terminal& terminal);
// Means over the clients, or what each of them reported.
absl::Status ShowMetrics(AdminClient& client, const MetricsOptions& options, const Terminal& terminal);
absl::Status ShowLedger(AdminClient& client, const LedgerOptions& options, const Terminal& terminal);
absl::Status ShowSummary(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
// Returns when the run has ended. A coordinator that goes away is called again until it was silent for
// `patience_seconds`: then UNAVAILABLE. On a terminal a view of the whole screen, CANCELLED when a signal ends it.
absl::Status WatchRun(AdminClient& client, const WatchOptions& options, const Terminal& terminal);
// Hands the news of one run on until it has ended, or those of all runs for ever (follow/target.h). INVALID_ARGUMENT
// when there is nowhere to hand them to; UNAVAILABLE as WatchRun; DEADLINE_EXCEEDED when a place is away at the run's
// end.
absl::Status FollowRuns(AdminClient& client, const FollowRunsOptions& options, const Terminal& terminal);
absl::Status ShowRuns(AdminClient& client, const RunsOptions& options, const Terminal& terminal);
absl::Status CreateRun(AdminClient& client, const CreateOptions& options, const Terminal& terminal);
// Asks at the terminal first, unless `yes`; FAILED_PRECONDITION when nobody is there to answer or the answer is no.
absl::Status DeleteRun(AdminClient& client, const DeleteOptions& options, const Terminal& terminal);
absl::Status StopRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal);
absl::Status PauseRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal);
absl::Status ResumeRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal);
absl::Status AbortOpenRound(AdminClient& client, const SteerOptions& options, const Terminal& terminal);
absl::Status BackUp(AdminClient& client, const BackupOptions& options, const Terminal& terminal);
absl::Status ExportFiles(AdminClient& client, const ExportOptions& options, const Terminal& terminal);

// In which settings two runs differ. Needs a coordinator for those that are no files. ABORTED when they differ;
// INVALID_ARGUMENT as LoadRunConfig; otherwise what kept it from reading one.
absl::Status DiffRuns(const DiffOptions& options, const Terminal& terminal);
// Settings that differ, final figures, and the bytes to reach accuracies. INVALID_ARGUMENT for a run that is not there
// or cannot be read, FAILED_PRECONDITION when one of several does not reach an accuracy that `options` name; otherwise
// what kept it from writing the picture.
absl::Status CompareRuns(const CompareOptions& options, const Terminal& terminal);

// These need no coordinator. Validating returns INVALID_ARGUMENT with every error of the file, one a line with file,
// line and rule; with --json they are printed, and the status has their number.
absl::Status Restore(const RestoreOptions& options, const Terminal& terminal);
absl::Status ValidateRunFile(const ValidateOptions& options, const Terminal& terminal);
// The keys of run files: all, those that `key` names (NOT_FOUND when there are none), or the document.
absl::Status ShowConfigReference(const ConfigOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_COMMANDS_H_
