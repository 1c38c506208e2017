#include "coordinator/rpc/run_registry.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/external_learning.h"
#include "core/allow_list.h"
#include "core/file_system.h"
#include "core/log/log_details.h"
#include "core/status.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "storage/event_kinds.h"
#include "storage/module_file.h"
#include "storage/state_directory.h"
#include "storage/temporary_directory.h"

namespace terse {
namespace {

// Run files name what is served: says which unfinished runs the operator may have forgotten.
void WarnOfUnserved(RunStores& stores, const std::vector<HeldRun>& held, const std::vector<RunPlan>& served) {
  std::vector<std::string> names;
  for (const HeldRun& run : held) {
    const auto same = [&run](const RunPlan& plan) { return plan.name == run.name; };
    if (std::any_of(served.begin(), served.end(), same)) continue;
    // One that cannot be read is not known to be finished.
    if (stores.HoldsUnfinishedRun(run.directory).value_or(true)) names.push_back(run.name);
  }
  if (names.empty()) return;
  Log(LogLevel::kWarn, kRunLog, {},
      absl::StrCat(stores.place(), " holds unfinished runs that are not served, because --run-file names others: ",
                   absl::StrJoin(names, ", "), "; start without --run-file to serve all runs"));
}

// Plans for the runs of a coordinator: those of the run files, or without run files all that its stores hold.
absl::StatusOr<std::vector<RunPlan>> PlanRuns(RunStores& stores, const std::string& state_directory,
                                              const std::vector<std::string>& run_files) {
  std::vector<RunPlan> plans;
  for (const std::string& file : run_files) {
    TERSE_ASSIGN_OR_RETURN(v1::RunConfig config, LoadRunConfig(file));
    if (const absl::Status status = CheckServedName(config.name()); !status.ok()) return Annotate(status, file);
    const auto same =
        std::find_if(plans.begin(), plans.end(), [&](const RunPlan& plan) { return plan.name == config.name(); });
    if (same != plans.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(same->run_file, " and ", file, " both name run '", config.name(), "'; change one"));
    }
    plans.push_back({config.name(), "", std::move(config), file});
  }
  TERSE_ASSIGN_OR_RETURN(const std::vector<HeldRun> held, stores.Held());
  if (run_files.empty()) {
    for (const HeldRun& run : held) plans.push_back({run.name, run.directory, absl::nullopt, ""});
    return plans;
  }
  WarnOfUnserved(stores, held, plans);
  for (RunPlan& plan : plans) {
    const auto there =
        std::find_if(held.begin(), held.end(), [&plan](const HeldRun& run) { return run.name == plan.name; });
    plan.directory = there == held.end() ? RunDirectory(state_directory, plan.name) : there->directory;
  }
  return plans;
}

std::string Names(const std::vector<RunHost*>& runs) {
  return absl::StrJoin(runs, ", ", [](std::string* out, const RunHost* run) { absl::StrAppend(out, run->name()); });
}

// As RunRegistry::Find, among `all`, for a caller who may hear of `heard`.
absl::StatusOr<RunHost*> FindAmong(const std::vector<RunHost*>& all, const std::vector<RunHost*>& heard,
                                   const std::string& name, bool is_relay) {
  if (name.empty() && heard.size() == 1) return heard.front();
  if (all.empty()) {
    return absl::NotFoundError(
        is_relay ? "this relay has not joined a run of the coordinator above it yet"
                 : "no run is served here yet; create one with `tersectl run create --run-file FILE`");
  }
  for (RunHost* run : all) {
    if (run->name() == name) return run;
  }
  if (name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("several runs are served here; name one with --run: ", Names(heard)));
  }
  return absl::NotFoundError(absl::StrCat("no run '", name, "' is served here",
                                          heard.empty() ? "" : absl::StrCat("; there are: ", Names(heard))));
}

// Checks that the model's file belongs to the run, and is there if and only if the run needs one.
absl::Status CheckModule(const v1::Model& model, absl::string_view module) {
  if (HasModelFile(model.name()) == !module.empty() && (module.empty() || ModuleHash(module) == model.hash()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model's file and the run do not belong together: model.name = '", model.name(), "', model.hash = '",
      model.hash(), "', and the file has ", module.size(), " bytes", module.empty() ? "" : " and the SHA-256 ",
      module.empty() ? "" : ModuleHash(module), "; `tersectl run create --run-file FILE --model FILE` sets both"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunRegistry>> RunRegistry::Open(Options options,
                                                               const std::vector<std::string>& run_files) {
  TERSE_ASSIGN_OR_RETURN(std::vector<RunPlan> plans, PlanRuns(*options.stores, options.state_directory, run_files));
  std::unique_ptr<RunRegistry> registry(new RunRegistry(std::move(options)));
  std::vector<std::unique_ptr<RunHost>> runs;
  for (RunPlan& plan : plans) {
    TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunHost> run, registry->OpenHost(std::move(plan)));
    runs.push_back(std::move(run));
  }
  RemoveDeletedRuns(*registry->options_.stores);
  absl::MutexLock lock(&registry->mutex_);
  registry->runs_ = std::move(runs);
  return registry;
}

absl::StatusOr<std::unique_ptr<RunHost>> RunRegistry::OpenHost(RunPlan plan,
                                                               std::shared_ptr<RunLearning> checked) const {
  const std::string name = plan.name;
  // The host keeps the function, and should not keep by it what it later lets go.
  const auto given = std::make_shared<std::shared_ptr<RunLearning>>(std::move(checked));
  const auto make_learning = [this, given](const RunConfig& config,
                                           const std::string& module) -> absl::StatusOr<std::shared_ptr<RunLearning>> {
    if (std::shared_ptr<RunLearning> learning = std::move(*given); learning != nullptr) return learning;
    return MakeLearning(config, module, nullptr);
  };
  absl::StatusOr<std::unique_ptr<RunHost>> run =
      RunHost::Open({std::move(plan), options_.stores.get(), make_learning, options_.clock,
                     [this](const RunHost&) { options_.on_change(); }, options_.on_sync_failure, options_.wrap_store,
                     options_.trace_rounds, options_.relay});
  if (!run.ok()) return Annotate(run.status(), absl::StrCat("run '", name, "'"));
  return run;
}

absl::StatusOr<std::shared_ptr<RunLearning>> RunRegistry::MakeLearning(const RunConfig& config,
                                                                       const std::string& module,
                                                                       const std::function<bool()>& cancelled) const {
  if (config.model.name == kExternalModel) return MakeExternalLearning(config, module, options_.make_evaluator);
  if (config.model.name != kTorchScriptModel || options_.make_module_learning == nullptr) {
    return options_.make_learning(config, module, options_.data_directory);
  }
  absl::StatusOr<std::unique_ptr<RunLearning>> learning = options_.make_module_learning(config, module, cancelled);
  LogDetails(kRunLog, {config.name}, learning.status());
  return learning;
}

absl::StatusOr<std::shared_ptr<RunLearning>> RunRegistry::CheckModel(const v1::RunConfig& config,
                                                                     absl::string_view module,
                                                                     const std::function<bool()>& cancelled) {
  TERSE_ASSIGN_OR_RETURN(const RunConfig core, ToCore(config));
  if (core.model.name == kExternalModel) return MakeLearning(core, std::string(module), nullptr);
  if (core.model.name != kTorchScriptModel || options_.make_module_learning == nullptr) {
    return std::shared_ptr<RunLearning>();
  }
  const absl::Cleanup ended = [this] { --checks_; };
  if (++checks_ > kMostChecks) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMostChecks, " models are being checked already; try again when one of them is through"));
  }
  absl::StatusOr<std::shared_ptr<RunLearning>> learning = MakeLearning(core, std::string(module), cancelled);
  if (!learning.ok()) return Annotate(learning.status(), absl::StrCat("run '", config.name(), "'"));
  return learning;
}

void RunRegistry::Start() {
  absl::MutexLock lock(&creation_mutex_);
  started_ = true;
  for (RunHost* run : runs()) run->Start();
}

absl::Status RunRegistry::Stop() {
  absl::MutexLock lock(&creation_mutex_);
  started_ = false;
  absl::Status status;
  for (RunHost* run : runs()) status.Update(run->Stop());
  return status;
}

absl::Status RunRegistry::CheckNew(const v1::RunConfig& config) const {
  if (!started_) return absl::UnavailableError("the coordinator is starting or shutting down");
  std::error_code ignored;
  if (!std::filesystem::exists(RunDirectory(options_.state_directory, config.name()), ignored) &&
      !Find(config.name()).ok()) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("there is a run '", config.name(), "' already; choose another name for the new one"));
}

absl::StatusOr<RunHost*> RunRegistry::Create(const v1::RunConfig& config, absl::string_view module, bool paused,
                                             const std::function<bool()>& cancelled) {
  if (options_.relay.upstream != nullptr) {
    return absl::FailedPreconditionError("this is a relay: create the run at the coordinator above it");
  }
  TERSE_RETURN_IF_ERROR(ValidateNewRun(config));
  TERSE_RETURN_IF_ERROR(CheckServedName(config.name()));
  TERSE_RETURN_IF_ERROR(CheckModule(config.model(), module));
  {
    absl::MutexLock creation(&creation_mutex_);
    TERSE_RETURN_IF_ERROR(CheckNew(config));
  }
  TERSE_ASSIGN_OR_RETURN(const std::shared_ptr<RunLearning> checked, CheckModel(config, module, cancelled));
  absl::MutexLock creation(&creation_mutex_);
  TERSE_RETURN_IF_ERROR(CheckNew(config));  // while the model was checked, another may have been made
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunHost> run, Make(config, module, paused, checked, absl::nullopt));
  return Begin(std::move(run));
}

absl::StatusOr<RunHost*> RunRegistry::CreateRelay(const v1::RunConfig& config, absl::string_view module,
                                                  RelayStart start) {
  TERSE_RETURN_IF_ERROR(CheckServedName(config.name()));
  absl::MutexLock creation(&creation_mutex_);
  TERSE_RETURN_IF_ERROR(CheckNew(config));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<RunHost> run,
                         Make(config, module, /*paused=*/false, nullptr, std::move(start)));
  return Begin(std::move(run));
}

RunHost* RunRegistry::Begin(std::unique_ptr<RunHost> run) {
  RunHost* const created = run.get();
  {
    absl::MutexLock lock(&mutex_);
    runs_.push_back(std::move(run));
  }
  created->Start();
  options_.on_change();
  return created;
}

absl::StatusOr<std::unique_ptr<RunHost>> RunRegistry::Make(const v1::RunConfig& config, absl::string_view module,
                                                           bool paused, const std::shared_ptr<RunLearning>& checked,
                                                           const absl::optional<RelayStart>& relay) const {
  const std::string directory = RunDirectory(options_.state_directory, config.name());
  RunStores& stores = *options_.stores;
  const TemporaryDirectory partial(absl::StrCat(directory, kPartialSuffix));
  const auto remove_partial = [&] { return stores.RemoveOutside(partial.path()).status(); };
  TERSE_RETURN_IF_ERROR(remove_partial());  // what a crash left
  // Otherwise it stays until the next run of this name is made; nobody serves it.
  const absl::Cleanup removed = [&] { remove_partial().IgnoreError(); };
  TERSE_RETURN_IF_ERROR(Prepare(config, module, paused, checked, relay, partial.path()));
  TERSE_RETURN_IF_ERROR(stores.Rename(partial.path(), directory));
  absl::StatusOr<std::unique_ptr<RunHost>> run = OpenHost({config.name(), directory, absl::nullopt, ""}, checked);
  // Otherwise a run that its operator believes refused would be served at the next start.
  if (!run.ok()) stores.Rename(directory, partial.path()).IgnoreError();
  return run;
}

absl::Status RunRegistry::Prepare(const v1::RunConfig& config, absl::string_view module, bool paused,
                                  const std::shared_ptr<RunLearning>& checked, const absl::optional<RelayStart>& relay,
                                  const std::string& directory) const {
  TERSE_RETURN_IF_ERROR(PosixFiles().MakeDirectory(directory));
  if (!module.empty()) TERSE_RETURN_IF_ERROR(WriteModule(PosixFiles(), directory, config.model().name(), module));
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunHost> run,
                         OpenHost({config.name(), directory, config, "the request", relay}, checked));
  if (!paused) return absl::OkStatus();
  return run->Use([&](const RunHost::Live& live) -> absl::Status {
    const std::string reason = absl::StrCat("made so; it begins with `tersectl run start ", config.name(), "`");
    TERSE_RETURN_IF_ERROR(live.store->SetRunState(RunState::kPaused, reason));
    return live.store->AddEvent({options_.clock->NowMicros(), event::kRunPaused, 0, -1, reason});
  });
}

absl::StatusOr<RunHost*> RunRegistry::Find(const std::string& name) const {
  const std::vector<RunHost*> all = runs();
  return FindAmong(all, all, name, options_.relay.upstream != nullptr);
}

absl::StatusOr<RunHost*> RunRegistry::FindFor(const std::string& client, const std::string& name) const {
  const std::vector<RunHost*> all = runs();
  std::vector<RunHost*> open;
  for (RunHost* run : all) {
    if (IsAllowed(run->config().clients.allow, client)) open.push_back(run);
  }
  if (open.empty() && !all.empty() && name.empty()) {
    return absl::NotFoundError(absl::StrCat("no run here admits client '", client, "' (clients.allow)"));
  }
  return FindAmong(all, open, name, options_.relay.upstream != nullptr);
}

RunHost* RunRegistry::FindLineage(Id128 lineage) const {
  for (RunHost* run : runs()) {
    if (run->lineage() == lineage) return run;
  }
  return nullptr;
}

std::vector<RunHost*> RunRegistry::runs() const {
  absl::MutexLock lock(&mutex_);
  std::vector<RunHost*> all;
  for (const std::unique_ptr<RunHost>& run : runs_) all.push_back(run.get());
  return all;
}

}  // namespace terse
