// The places to which `tersectl follow` hands the news of runs.
#ifndef TERSE_TERSECTL_FOLLOW_TARGET_TABLE_H_
#define TERSE_TERSECTL_FOLLOW_TARGET_TABLE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tersectl/commands.h"
#include "tersectl/follow/stop_signal.h"
#include "tersectl/follow/target.h"

namespace terse {

// Makes the places that the command line names; `stop`, which must outlive them, ends their requests. The errors of
// files that they read, such as that of a secret.
absl::StatusOr<std::vector<std::unique_ptr<FollowTarget>>> MakeFollowTargets(const FollowRunsOptions& options,
                                                                             const Terminal& terminal,
                                                                             StopSignal* stop);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_TARGET_TABLE_H_
