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
#include "tersectl/admin_client.h"
#include "tersectl/export.h"

namespace terse {

// Where a command prints.
struct Terminal {
  std::ostream* out = nullptr;  // results
  std::ostream* err = nullptr;  // errors and remarks
  bool color = false;
  std::istream* in = nullptr;  // a person types here; nullptr: nobody does
  bool full_screen = false;    // standard input and output are a terminal that takes ANSI's sequences
};

// The options of `pki` and its commands (tersectl/pki_commands.h).
struct PkiOptions {
  std::string authority = "pki";         // the authority's folder
  std::string authority_name = "fleet";  // init
  int64_t authority_days = 3650;         // init
  int64_t days = 365;                    // issue, sign
  std::string role;                      // issue, request; sign: empty unless repeated
  std::string name;                      // issue, request; revoke: also a serial number
  std::vector<std::string> hosts;        // issue, request
  std::string out;                       // issue, request, sign: the TLS folder
  bool renew = false;                    // issue, request
  std::string request;                   // sign: the file
  std::vector<std::string> into;         // revoke: TLS folders
  bool revoked = false;                  // list
  std::string address;                   // invite: HOST:PORT of `serve`
  int64_t guests = 1;                    // invite
  double open_hours = 24;                // invite
  std::vector<std::string> patterns;     // invite: of names
  std::string invitation;                // withdraw: its id; enrol: its file
  std::string listen = "0.0.0.0:7701";   // serve
};

// The options that the command line gave, for all commands.
struct CommandOptions {
  AdminClient::Peer coordinator = {"unix:/var/lib/terse/admin.sock", {}};
  double timeout_seconds = 30;
  bool json = false;
  uint64_t first = 0;   // rounds, ledger, watch
  uint64_t last = 0;    // rounds, ledger
  uint64_t newest = 0;  // rounds
  uint32_t newest_events = 100;
  uint32_t newest_records = 100;  // audit
  bool follow = false;            // events
  bool lines = false;             // watch
  bool csv = false;
  bool names = false;  // runs
  bool why = false;    // rounds
  bool shutdown = false;
  double patience_seconds = 30;  // watch, events: how long a coordinator may be away
  std::string directory;
  ExportFormat format = ExportFormat::kAll;
  std::string file;                // validate, run create: the run file
  std::string config_key;          // config: a key or a table; empty: all
  bool markdown = false;           // config
  std::string model_file;          // run create: TorchScript
  bool paused = false;             // run create
  bool yes = false;                // run delete: asks nobody
  std::string diff_a, diff_b;      // run diff: names of runs, or run files
  std::string run;                 // empty: the only one that the coordinator has
  std::string reason;              // pause, abort, clients --set-aside
  std::string set_aside, readmit;  // clients: whom
  double set_aside_seconds = 600;
  std::string backup;           // restore: a directory that `backup` wrote
  std::string state_directory;  // restore: the coordinator's; doctor: anybody's
  bool force = false;           // restore, run delete
  PkiOptions pki;
  std::string authority_directory;  // doctor: the authority's, when it is on this machine
  std::string shell;                // completion
};

// All return the error of AdminClient or of the file system that ended them.
absl::Status ShowStatus(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowRounds(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowClients(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
// Sets one aside or readmits it, when the command line says so.
absl::Status ChangeClient(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
// With `follow`, goes on as WatchRun until the run has ended; OUT_OF_RANGE when it was replaced meanwhile.
absl::Status ShowEvents(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowAudit(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowLedger(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowSummary(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
// Returns when the run has ended. A coordinator that goes away is called again until it was silent for
// `patience_seconds`: then UNAVAILABLE. On a terminal a view of the whole screen, CANCELLED when a signal ends it.
absl::Status WatchRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ShowRuns(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status CreateRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
// Asks at the terminal first, unless `yes`; FAILED_PRECONDITION when nobody is there to answer or the answer is no.
absl::Status DeleteRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status StopRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status PauseRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ResumeRun(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status AbortOpenRound(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status BackUp(AdminClient& client, const CommandOptions& options, const Terminal& terminal);
absl::Status ExportFiles(AdminClient& client, const CommandOptions& options, const Terminal& terminal);

// In which settings two runs differ. Needs a coordinator for those that are no files. ABORTED when they differ;
// INVALID_ARGUMENT as LoadRunConfig; otherwise what kept it from reading one.
absl::Status CompareRuns(const CommandOptions& options, const Terminal& terminal);

// These need no coordinator. Validating returns INVALID_ARGUMENT with every error of the file, one a line with file,
// line and rule; with --json they are printed, and the status has their number.
absl::Status Restore(const CommandOptions& options, const Terminal& terminal);
absl::Status ValidateRunFile(const CommandOptions& options, const Terminal& terminal);
// The keys of run files: all, those that `config_key` names (NOT_FOUND when there are none), or the document.
absl::Status ShowConfigReference(const CommandOptions& options, const Terminal& terminal);

}  // namespace terse

#endif  // TERSE_TERSECTL_COMMANDS_H_
