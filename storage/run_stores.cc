#include "storage/run_stores.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/file_system.h"
#include "core/status.h"
#include "storage/state_directory.h"

namespace terse {
namespace {

class DirectoryStores final : public RunStores {
 public:
  explicit DirectoryStores(std::string state_directory) : state_directory_(std::move(state_directory)) {}

  const std::string& place() const override { return state_directory_; }

  absl::StatusOr<std::vector<HeldRun>> Held() override {
    std::vector<HeldRun> held;
    TERSE_ASSIGN_OR_RETURN(const std::string in_place, NameOfRunInPlace());
    if (!in_place.empty()) held.push_back({in_place, state_directory_});
    TERSE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListRunNames(PosixFiles(), state_directory_));
    for (const std::string& name : names) {
      if (name != in_place) held.push_back({name, RunDirectory(state_directory_, name)});
    }
    return held;
  }

  absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& directory) override {
    return RunStore::Open(directory);
  }

  absl::StatusOr<bool> HoldsUnfinishedRun(const std::string& directory) override {
    return terse::HoldsUnfinishedRun(directory);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    TERSE_RETURN_IF_ERROR(PosixFiles().Rename(from, to));
    absl::Status synced = PosixFiles().SyncDirectory(RunsDirectory());
    if (!synced.ok() && !IsSyncFailure(synced)) PosixFiles().Rename(to, from).IgnoreError();
    return synced;
  }

  absl::StatusOr<std::vector<std::string>> Deleted() override {
    return DeletedDirectories(PosixFiles(), state_directory_);
  }

  absl::StatusOr<uint64_t> RemoveOutside(const std::string&) override { return 0; }

  absl::StatusOr<UpstreamFiles> OpenUpstream() override {
    // The machine's files are never destroyed, and nobody owns them.
    return UpstreamFiles{std::shared_ptr<FileSystem>(std::shared_ptr<void>(), &PosixFiles()),
                         UpstreamDirectory(state_directory_)};
  }

 private:
  std::string RunsDirectory() const { return absl::StrCat(state_directory_, "/runs"); }

  // The name of the run that an earlier release keeps in the state directory itself; empty when there is none.
  absl::StatusOr<std::string> NameOfRunInPlace() const {
    if (!HoldsRun(PosixFiles(), state_directory_)) return std::string();
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<RunStore> store, RunStore::Open(state_directory_));
    TERSE_ASSIGN_OR_RETURN(const absl::optional<RunRecord> run, store->Run());
    return run.has_value() ? run->name : std::string();
  }

  const std::string state_directory_;
};

}  // namespace

std::unique_ptr<RunStores> RunsInDirectories(const std::string& state_directory) {
  return std::make_unique<DirectoryStores>(state_directory);
}

}  // namespace terse
