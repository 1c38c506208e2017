// The commands that change something.
#include <istream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/log/plain_text.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "storage/module_file.h"
#include "storage/run_store.h"
#include "storage/temporary_directory.h"
#include "tersectl/backup.h"
#include "tersectl/backup_objects.h"
#include "tersectl/commands.h"
#include "tersectl/objects/object_store.h"
#include "tersectl/print.h"
#include "tersectl/text_table.h"
#include "tersectl/traffic.h"

namespace terse {

namespace {

// Puts the hash of the file that came with a run into its configuration.
absl::Status NameModule(const CreateOptions& options, const std::string& hash, v1::Model* model) {
  const bool wants_file = HasModelFile(model->name());
  if (wants_file && hash.empty()) {
    const absl::string_view kind =
        model->name() == kExternalModel ? "a model of the clients' own trainers" : "a TorchScript module";
    return absl::InvalidArgumentError(absl::StrCat(options.file, " trains ", kind, "; give its file with --model"));
  }
  if (!wants_file && !hash.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.file, " trains model '", model->name(), "'; to train ",
                                                   options.model_file,
                                                   " set model.name = 'torchscript', or 'external' for weights "
                                                   "that only the clients' own trainers know"));
  }
  if (!model->hash().empty() && model->hash() != hash) {
    return absl::InvalidArgumentError(absl::StrCat(options.file, " wants the model file ", model->hash(), ", and ",
                                                   options.model_file, " is ", hash, "; correct one of them"));
  }
  model->set_hash(hash);
  return absl::OkStatus();
}

// Whether the person at the terminal means the run that is about to go.
absl::Status Confirm(AdminClient& client, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const v1::Status status, client.GetStatus());
  if (terminal.in == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("nobody is at a terminal to confirm that run ", status.run(),
                                                      " goes for good; say so with --yes"));
  }
  *terminal.err << "run " << PlainText(status.run()) << " is " << PlainText(status.state()) << ", at version "
                << status.version()
                << ". Its model, its history and its checkpoints go for good\n(`tersectl backup` makes a copy). "
                << "Type its name to delete it: " << std::flush;
  std::string typed;
  std::getline(*terminal.in, typed);
  if (typed == status.run()) return absl::OkStatus();
  return absl::FailedPreconditionError("that is not its name; nothing is deleted");
}

}  // namespace

absl::Status CreateRun(AdminClient& client, const CreateOptions& options, const Terminal& terminal) {
  std::string module;
  if (!options.model_file.empty()) {
    TERSE_ASSIGN_OR_RETURN(module, PosixFiles().Read(options.model_file, kMaxModuleBytes));
    if (module.empty()) return absl::InvalidArgumentError(absl::StrCat(options.model_file, " is empty"));
  }
  TERSE_ASSIGN_OR_RETURN(v1::RunConfig config, LoadRunConfig(options.file));
  const std::string hash = module.empty() ? "" : ModuleHash(module);
  TERSE_RETURN_IF_ERROR(NameModule(options, hash, config.mutable_model()));
  TERSE_ASSIGN_OR_RETURN(const v1::CreateRunReply made, client.CreateRun(config, module, options.paused));
  if (options.paused && made.state() != RunStateName(RunState::kPaused)) {
    return absl::FailedPreconditionError(
        absl::StrCat("run ", config.name(), " is made, but opens rounds: the coordinator is of an earlier release, ",
                     "which makes no paused runs; pause it with `tersectl run pause ", config.name(), "`"));
  }
  TERSE_ASSIGN_OR_RETURN(const TrafficReport traffic, ReportTraffic(config, static_cast<int64_t>(made.elements())));
  if (options.json) {
    PrintJson({{"run", config.name()}, {"model_hash", hash}, {"paused", options.paused}, {"traffic", traffic.json}},
              terminal);
    return absl::OkStatus();
  }
  *terminal.out << "run " << config.name() << " is served\n" << traffic.text;
  if (options.paused) *terminal.out << "it opens no round until\n  tersectl run start " << config.name() << "\n";
  if (config.model().name() == kExternalModel) {
    *terminal.out << "clients train it with a trainer of their own: terse-client --trainer COMMAND, or Python's "
                     "terse.join\n";
  } else if (!hash.empty()) {
    *terminal.out << "clients train its model when they are started with\n  --allow-model " << hash << "\n";
  }
  return absl::OkStatus();
}

absl::Status DeleteRun(AdminClient& client, const DeleteOptions& options, const Terminal& terminal) {
  if (!options.yes) TERSE_RETURN_IF_ERROR(Confirm(client, terminal));
  TERSE_ASSIGN_OR_RETURN(const uint64_t bytes, client.DeleteRun(options.force));
  if (options.json) {
    PrintJson({{"run", options.run}, {"bytes", bytes}}, terminal);
  } else {
    *terminal.out << "run " << options.run << " is deleted: " << BytesText(bytes) << " freed\n";
  }
  return absl::OkStatus();
}

absl::Status StopRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::string state, client.Stop(options.shutdown));
  PrintOutcome(options, "state", state, state, terminal);
  return absl::OkStatus();
}

absl::Status PauseRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::string state, client.Pause(options.reason));
  PrintOutcome(options, "state", state, state, terminal);
  return absl::OkStatus();
}

absl::Status ResumeRun(AdminClient& client, const SteerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const std::string state, client.Resume());
  PrintOutcome(options, "state", state, state, terminal);
  return absl::OkStatus();
}

absl::Status AbortOpenRound(AdminClient& client, const SteerOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const uint64_t round, client.AbortRound(options.reason));
  PrintOutcome(options, "round", round, absl::StrCat("round ", round, " is given up; the run goes on"), terminal);
  return absl::OkStatus();
}

absl::Status ChangeClient(AdminClient& client, const ClientsOptions& options, const Terminal& terminal) {
  const bool readmits = !options.readmit.empty();
  const std::string& name = readmits ? options.readmit : options.set_aside;
  TERSE_ASSIGN_OR_RETURN(const int64_t until_us,
                         client.SetAside(name, readmits ? 0 : options.set_aside_seconds, options.reason));
  PrintOutcome(options, "set_aside_until_us", until_us,
               until_us == 0 ? absl::StrCat(name, " may take part")
                             : absl::StrCat(name, " is set aside until ", TimeText(until_us)),
               terminal);
  return absl::OkStatus();
}

absl::Status BackUp(AdminClient& client, const BackupOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const BackupResult result, IsBucketAddress(options.directory)
                                                        ? UploadBackup(client, options.directory)
                                                        : SaveBackup(client, options.directory));
  if (options.json) {
    PrintJson({{"directory", options.directory}, {"files", result.files}, {"bytes", result.bytes}}, terminal);
  } else {
    *terminal.out << options.directory << ": " << result.files << " files, " << BytesText(result.bytes) << "\n";
  }
  return absl::OkStatus();
}

namespace {

// A backup of a bucket is fetched first.
absl::StatusOr<RestoreResult> RestoreFromAnywhere(RestoreRequest request) {
  if (!IsBucketAddress(request.backup)) return RestoreBackup(request);
  TERSE_ASSIGN_OR_RETURN(const std::string name, NewTemporaryName("terse-restore"));
  const TemporaryDirectory directory(name);
  TERSE_RETURN_IF_ERROR(DownloadBackup(request.backup, directory.path()));
  request.backup = directory.path();
  return RestoreBackup(request);
}

}  // namespace

absl::Status Restore(const RestoreOptions& options, const Terminal& terminal) {
  TERSE_ASSIGN_OR_RETURN(const RestoreResult result,
                         RestoreFromAnywhere({options.backup, options.state_directory, options.run, options.force}));
  if (options.json) {
    PrintJson({{"run", result.run},
               {"directory", result.directory},
               {"version", result.version},
               {"replaced", result.replaced}},
              terminal);
    return absl::OkStatus();
  }
  *terminal.out << "run " << result.run << " is in " << result.directory << ", at version " << result.version << "\n";
  if (!result.replaced.empty()) *terminal.out << "the run that was there is in " << result.replaced << "\n";
  *terminal.out
      << "It has a new lineage: clients that trained on after the backup was made start with a zero residual,\n"
         "which is counted, and nothing counts twice. Start it with: terse-coordinator --state "
      << options.state_directory << "\n";
  return absl::OkStatus();
}

}  // namespace terse
