// The runs of a coordinator process.
#ifndef TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
#define TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/rpc/run_host.h"

namespace terse {

// Thread-safe. A RunHost stays until the end of the object, also that of a run which was deleted: its store is closed
// then, and who still has the pointer gets the status of a run that is down.
class RunRegistry {
 public:
  struct Options {
    std::string state_directory;
    std::string data_directory;  // for evaluation; empty: the embedded data set
    RunLearningFactory make_learning;
    Clock* clock = nullptr;
    // Called in some thread after a run was added, deleted or changed its condition.
    std::function<void()> on_change;
    // As RunHost::Options.
    std::function<void(const absl::Status&)> on_sync_failure;
    StoreWrapper wrap_store = {};
  };

  // Opens the runs of `run_files`, which may be new, or without run files all that the state directory holds: none are
  // served before Start. INVALID_ARGUMENT when a run file breaks a rule or two name the same run; those of FileSystem
  // and RunHost::Open, which name the run.
  static absl::StatusOr<std::unique_ptr<RunRegistry>> Open(Options options, const std::vector<std::string>& run_files);

  // Serves every run. From here on, runs can be created.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_, creation_mutex_);
  // Ends every run in order and returns the first error. No run can be created from then on.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mutex_, creation_mutex_);

  // Makes a new run, whole or not at all, and serves it; a `paused` one opens no round until it is resumed. `module`
  // holds the TorchScript file of a run whose model is one. INVALID_ARGUMENT for a configuration that breaks a rule, a
  // file that is not the one of model.hash, and what a RunHost finds; ALREADY_EXISTS when there is a run of that name;
  // UNAVAILABLE before Start and after Stop; those of FileSystem.
  absl::StatusOr<RunHost*> Create(const v1::RunConfig& config, absl::string_view module, bool paused = false)
      ABSL_LOCKS_EXCLUDED(mutex_, creation_mutex_);

  // Removes a run for good: with its directory, and with `force` also an active or paused one. Returns the bytes of the
  // files that are gone. At any moment the disk holds the run whole, or nothing that is served: what a crash leaves of
  // the files goes at the next Open. INVALID_ARGUMENT for an empty name; NOT_FOUND; FAILED_PRECONDITION for a run that
  // goes on, without `force`, and for one in the state directory itself; UNAVAILABLE before Start and after Stop; those
  // of FileSystem when the directory cannot be renamed: the run is then down until the coordinator starts again.
  absl::StatusOr<uint64_t> Delete(const std::string& name, bool force) ABSL_LOCKS_EXCLUDED(mutex_, creation_mutex_);

  // The run of that name; an empty name means the only one. NOT_FOUND for an unknown name and INVALID_ARGUMENT for an
  // empty one where there are several, both with the names.
  absl::StatusOr<RunHost*> Find(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a client, which hears only the names of runs that it may join (clients.allow); an empty name means the
  // only one of those. A run that it asks for by its name is found, and tells itself whom it admits.
  absl::StatusOr<RunHost*> FindFor(const std::string& client, const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // nullptr when no run has this lineage.
  RunHost* FindLineage(Id128 lineage) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<RunHost*> runs() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit RunRegistry(Options options) : options_(std::move(options)) {}
  absl::StatusOr<std::unique_ptr<RunHost>> OpenHost(RunPlan plan) const;
  // The new run in its directory, open.
  absl::StatusOr<std::unique_ptr<RunHost>> Make(const v1::RunConfig& config, absl::string_view module, bool paused,
                                                const std::string& directory) const;
  // All files of the new run, in a directory that is not served.
  absl::Status Prepare(const v1::RunConfig& config, absl::string_view module, bool paused,
                       const std::string& directory) const;

  // OK when the run may be deleted.
  absl::Status CheckDeletable(const RunHost& run, bool force) const;
  // Ends the run, whose directory gets that name.
  absl::Status Retire(RunHost* run, const std::string& renamed) const;
  // Moves a run from one list to the other.
  void Move(RunHost* run, std::vector<std::unique_ptr<RunHost>>* from, std::vector<std::unique_ptr<RunHost>>* to) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  absl::Mutex creation_mutex_;  // one creation or deletion at a time
  bool started_ ABSL_GUARDED_BY(creation_mutex_) = false;
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(creation_mutex_);
  std::vector<std::unique_ptr<RunHost>> runs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RunHost>> deleted_ ABSL_GUARDED_BY(mutex_);
};

// Removes what a deletion that was cut short left in a state directory, which nobody else uses, and logs it.
void RemoveDeletedRuns(const std::string& state_directory);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
