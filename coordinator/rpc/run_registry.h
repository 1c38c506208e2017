// The runs of a coordinator process.
#ifndef TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
#define TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/rpc/run_host.h"

namespace terse {

// Thread-safe. A run that was added stays until the end of the object.
class RunRegistry {
 public:
  struct Options {
    std::string state_directory;
    std::string data_directory;  // for evaluation; empty: the embedded data set
    RunLearningFactory make_learning;
    Clock* clock = nullptr;
    // Called in some thread after a run was added or changed its condition.
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

  // The run of that name; an empty name means the only one. NOT_FOUND for an unknown name and INVALID_ARGUMENT for an
  // empty one where there are several, both with the names.
  absl::StatusOr<RunHost*> Find(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);
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

  const Options options_;
  absl::Mutex creation_mutex_;  // one creation at a time
  bool started_ ABSL_GUARDED_BY(creation_mutex_) = false;
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(creation_mutex_);
  std::vector<std::unique_ptr<RunHost>> runs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
