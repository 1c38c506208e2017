// The runs of a coordinator process.
#ifndef TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
#define TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "coordinator/rpc/run_host.h"

namespace terse {

// Constant once made, and so thread-safe; holds the hosts until the end of the process.
class RunRegistry {
 public:
  // At least one, with names of their own.
  explicit RunRegistry(std::vector<std::unique_ptr<RunHost>> runs) : runs_(std::move(runs)) {}

  // The run of that name; an empty name means the only one. NOT_FOUND for an unknown name and INVALID_ARGUMENT for an
  // empty one where there are several, both with the names.
  absl::StatusOr<RunHost*> Find(const std::string& name) const;
  // nullptr when no run has this lineage.
  RunHost* FindLineage(Id128 lineage) const;

  const std::vector<std::unique_ptr<RunHost>>& runs() const { return runs_; }

 private:
  std::string Names() const;

  const std::vector<std::unique_ptr<RunHost>> runs_;
};

// Plans for the runs of a state directory: those of the run files, which may be new, or without run files all that it
// holds. INVALID_ARGUMENT when a run file breaks a rule, two name the same run, or there is nothing to serve; those of
// FileSystem.
absl::StatusOr<std::vector<RunPlan>> PlanRuns(const std::string& state_directory,
                                              const std::vector<std::string>& run_files);

}  // namespace terse

#endif  // TERSE_COORDINATOR_RPC_RUN_REGISTRY_H_
