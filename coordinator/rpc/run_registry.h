// The runs of a coordinator process.
#ifndef TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
#define TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/rpc/external_learning.h"
#include "coordinator/rpc/run_host.h"

namespace terse {

// Thread-safe. A RunHost stays until the end of the object, also that of a run which was deleted: its store is closed
// then, and who still has the pointer gets the status of a run that is down.
class RunRegistry {
 public:
  // TorchScript files that are checked at a time: each is a process with the run's data.
  static constexpr int kMostChecks = 4;

  struct Options {
    std::string state_directory;
    std::shared_ptr<RunStores> stores;  // of that directory
    std::string data_directory;         // for evaluation; empty: the embedded data set
    RunLearningFactory make_learning;
    // Makes the learning of runs whose model is a TorchScript file instead, where that is not for this process to run.
    // `cancelled` is asked while it works, and may be empty. Empty: make_learning has those too.
    std::function<absl::StatusOr<std::unique_ptr<RunLearning>>(const RunConfig& config, const std::string& module,
                                                               const std::function<bool()>& cancelled)>
        make_module_learning;
    // Evaluates external models. Empty: nobody does.
    EvaluatorFactory make_evaluator = {};
    Clock* clock = nullptr;
    // Called in some thread after a run was added, deleted or changed its condition.
    std::function<void()> on_change;
    // As RunHost::Options.
    std::function<void(const absl::Status&)> on_sync_failure;
    StoreWrapper wrap_store = {};
    int64_t trace_rounds = 0;
    RelayHosting relay = {};  // of all runs
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
  // UNAVAILABLE before Start and after Stop; those of FileSystem. A TorchScript file is checked first, at which nobody
  // else waits: `cancelled`, which may be empty, ends that, and RESOURCE_EXHAUSTED says that kMostChecks others are
  // being checked.
  absl::StatusOr<RunHost*> Create(const v1::RunConfig& config, absl::string_view module, bool paused = false,
                                  const std::function<bool()>& cancelled = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_, creation_mutex_);

  // Makes the run of a relay, likewise; `module` holds its TorchScript file, which nobody runs here. Statuses of
  // Create.
  absl::StatusOr<RunHost*> CreateRelay(const v1::RunConfig& config, absl::string_view module, RelayStart start)
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
  // Finds the run for a client, which hears only the names of runs that it may join (clients.allow); an empty name
  // means the only one of those. A run that it asks for by its name is found, and tells itself whom it admits.
  absl::StatusOr<RunHost*> FindFor(const std::string& client, const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // nullptr when no run has this lineage.
  RunHost* FindLineage(Id128 lineage) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<RunHost*> runs() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit RunRegistry(Options options) : options_(std::move(options)) {}
  // `checked` is what CheckModel made of the run's model, or nullptr.
  absl::StatusOr<std::unique_ptr<RunHost>> OpenHost(RunPlan plan, std::shared_ptr<RunLearning> checked = nullptr) const;
  absl::StatusOr<std::shared_ptr<RunLearning>> MakeLearning(const RunConfig& config, const std::string& module,
                                                            const std::function<bool()>& cancelled) const;
  // The learning of a new run whose model is a TorchScript file; nullptr for another one.
  absl::StatusOr<std::shared_ptr<RunLearning>> CheckModel(const v1::RunConfig& config, absl::string_view module,
                                                          const std::function<bool()>& cancelled)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a run may be made now, and has a name that no other has.
  absl::Status CheckNew(const v1::RunConfig& config) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(creation_mutex_);
  // The new run in its directory, open.
  absl::StatusOr<std::unique_ptr<RunHost>> Make(const v1::RunConfig& config, absl::string_view module, bool paused,
                                                const std::shared_ptr<RunLearning>& checked,
                                                const absl::optional<RelayStart>& relay) const;
  // Serves a run that was made, from now on.
  RunHost* Begin(std::unique_ptr<RunHost> run) ABSL_LOCKS_EXCLUDED(mutex_);
  // All files of the new run, in a directory that is not served.
  absl::Status Prepare(const v1::RunConfig& config, absl::string_view module, bool paused,
                       const std::shared_ptr<RunLearning>& checked, const absl::optional<RelayStart>& relay,
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
  std::atomic<int> checks_{0};
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(creation_mutex_);
  std::vector<std::unique_ptr<RunHost>> runs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RunHost>> deleted_ ABSL_GUARDED_BY(mutex_);
};

// Removes what deletions that were cut short left, where nobody else uses it, and logs it.
void RemoveDeletedRuns(RunStores& stores);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
