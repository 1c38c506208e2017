// RunRegistry::Delete, and what a deletion that a crash cut short leaves.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/log_components.h"
#include "coordinator/rpc/run_registry.h"
#include "core/file_system.h"
#include "core/log/log.h"
#include "core/status.h"
#include "storage/state_directory.h"
#include "storage/temporary_directory.h"

namespace terse {
namespace {

constexpr char kDeleted[] = "it was deleted by an operator";

// Returns the bytes of the files below a directory, as far as they can be seen; 0 when it is gone.
uint64_t BytesBelow(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unseen;
    const uint64_t size = it->is_regular_file(unseen) ? it->file_size(unseen) : 0;
    if (!unseen) bytes += size;
  }
  return bytes;
}

// Removes what is left of a deleted run, and returns the bytes that went.
uint64_t RemoveRest(RunStores& stores, const std::string& directory) {
  const absl::StatusOr<uint64_t> outside = stores.RemoveOutside(directory);
  if (!outside.ok()) {
    Log(LogLevel::kWarn, kServerLog, {},
        absl::StrCat("the next start tries again to remove ", directory, ": ", outside.status().message()));
  }
  const uint64_t bytes = BytesBelow(directory) + outside.value_or(0);
  RemoveTree(directory);
  std::error_code unseen;
  if (!std::filesystem::exists(directory, unseen) && !unseen) return bytes;
  Log(LogLevel::kWarn, kServerLog, {},
      absl::StrCat(directory, " cannot be removed; it is not served, and the next start tries again"));
  return bytes - std::min(bytes, BytesBelow(directory));
}

}  // namespace

void RemoveDeletedRuns(RunStores& stores) {
  const absl::StatusOr<std::vector<std::string>> deleted = stores.Deleted();
  if (!deleted.ok()) return;  // opening the runs says why
  for (const std::string& directory : *deleted) {
    const uint64_t bytes = RemoveRest(stores, directory);
    Log(LogLevel::kInfo, kServerLog, {},
        absl::StrCat("removed ", directory, ", the rest of a deleted run: ", bytes, " bytes"));
  }
}

absl::StatusOr<uint64_t> RunRegistry::Delete(const std::string& name, bool force) {
  if (name.empty()) return absl::InvalidArgumentError("name the run to delete, also when it is the only one");
  absl::MutexLock creation(&creation_mutex_);
  if (!started_) return absl::UnavailableError("the coordinator is starting or shutting down");
  TERSE_ASSIGN_OR_RETURN(RunHost* const run, Find(name));
  TERSE_RETURN_IF_ERROR(CheckDeletable(*run, force));
  {
    absl::MutexLock lock(&mutex_);
    Move(run, &runs_, &deleted_);
  }
  const std::string rest = absl::StrCat(run->directory(), kDeletedSuffix);
  if (const absl::Status status = Retire(run, rest); !status.ok()) {
    {
      absl::MutexLock lock(&mutex_);
      Move(run, &deleted_, &runs_);
    }
    options_.on_change();
    return Annotate(status,
                    absl::StrCat("run '", name, "' is not deleted, and down until the coordinator starts again"));
  }
  options_.on_change();
  const uint64_t bytes = RemoveRest(*options_.stores, rest);
  Log(LogLevel::kInfo, kRunLog, {name}, absl::StrCat("the run is deleted: ", bytes, " bytes"));
  return bytes;
}

absl::Status RunRegistry::CheckDeletable(const RunHost& run, bool force) const {
  if (run.directory() == options_.state_directory) {
    return absl::FailedPreconditionError(
        absl::StrCat("run '", run.name(), "' is kept in ", options_.state_directory,
                     " itself, as an earlier release did it; stop the ",
                     "coordinator and remove run.sqlite*, checkpoints and segments there"));
  }
  if (force) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const RunRecord record, run.Record());
  if (record.state == RunState::kFinished || record.state == RunState::kStopped) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("run '", run.name(), "' is ", RunStateName(record.state),
                                                    "; end it first with `tersectl run stop ", run.name(),
                                                    "`, or delete it as it is with --force"));
}

absl::Status RunRegistry::Retire(RunHost* run, const std::string& renamed) const {
  RemoveRest(*options_.stores, renamed);  // of an earlier run of this name
  const auto unname = [&]() -> absl::Status {
    absl::Status status = options_.stores->Rename(run->directory(), renamed);
    if (IsSyncFailure(status)) options_.on_sync_failure(status);
    return status;
  };
  return run->Retire(unname, kDeleted);
}

void RunRegistry::Move(RunHost* run, std::vector<std::unique_ptr<RunHost>>* from,
                       std::vector<std::unique_ptr<RunHost>>* to) const {
  const auto found =
      std::find_if(from->begin(), from->end(), [run](const std::unique_ptr<RunHost>& one) { return one.get() == run; });
  to->push_back(std::move(*found));
  from->erase(found);
}

}  // namespace terse
