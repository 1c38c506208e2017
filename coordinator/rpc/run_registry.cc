#include "coordinator/rpc/run_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/file_system.h"
#include "core/status.h"
#include "proto/run_config_loader.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

// The name of the run that an earlier release keeps in the state directory itself; empty when there is none.
absl::StatusOr<std::string> NameOfRunInPlace(const std::string& state_directory) {
  if (!HoldsRun(PosixFiles(), state_directory)) return std::string();
  TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(state_directory));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store->Run());
  return run.has_value() ? run->name : std::string();
}

}  // namespace

absl::StatusOr<RunHost*> RunRegistry::Find(const std::string& name) const {
  if (name.empty()) {
    if (runs_.size() == 1) return runs_.front().get();
    return absl::InvalidArgumentError(absl::StrCat("several runs are served here; name one with --run: ", Names()));
  }
  for (const std::unique_ptr<RunHost>& run : runs_) {
    if (run->name() == name) return run.get();
  }
  return absl::NotFoundError(absl::StrCat("no run '", name, "' is served here; there are: ", Names()));
}

RunHost* RunRegistry::FindLineage(Id128 lineage) const {
  for (const std::unique_ptr<RunHost>& run : runs_) {
    if (run->lineage() == lineage) return run.get();
  }
  return nullptr;
}

std::string RunRegistry::Names() const {
  return absl::StrJoin(runs_, ", ", [](std::string* out, const auto& run) { absl::StrAppend(out, run->name()); });
}

absl::StatusOr<std::vector<RunPlan>> PlanRuns(const std::string& state_directory,
                                              const std::vector<std::string>& run_files) {
  std::vector<RunPlan> plans;
  for (const std::string& file : run_files) {
    TERSE_ASSIGN_OR_RETURN(v1::RunConfig config, LoadRunConfig(file));
    const auto same =
        std::find_if(plans.begin(), plans.end(), [&](const RunPlan& plan) { return plan.name == config.name(); });
    if (same != plans.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(same->run_file, " and ", file, " both name run '", config.name(), "'; change one"));
    }
    plans.push_back({config.name(), "", std::move(config), file});
  }
  TERSE_ASSIGN_OR_RETURN(const std::string in_place, NameOfRunInPlace(state_directory));
  if (run_files.empty()) {
    if (!in_place.empty()) plans.push_back({in_place, "", absl::nullopt, ""});
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListRunNames(PosixFiles(), state_directory));
    for (const std::string& name : names) {
      if (name != in_place) plans.push_back({name, "", absl::nullopt, ""});
    }
  }
  for (RunPlan& plan : plans) plan.directory = RunDirectory(state_directory, plan.name == in_place ? "" : plan.name);
  if (!plans.empty()) return plans;
  return absl::InvalidArgumentError(absl::StrCat(state_directory, " holds no run yet; give one with --run FILE"));
}

}  // namespace terse
