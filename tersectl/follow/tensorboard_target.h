// Event files for TensorBoard that grow while the runs go on.
#ifndef TERSE_TERSECTL_FOLLOW_TENSORBOARD_TARGET_H_
#define TERSE_TERSECTL_FOLLOW_TENSORBOARD_TARGET_H_

#include <memory>
#include <string>

#include "tersectl/follow/target.h"

namespace terse {

// Appends each run's committed rounds (tersectl/tensorboard.h) to DIRECTORY/RUN/events.out.tfevents.SECONDS.LINEAGE,
// where SECONDS is when the run was made and LINEAGE has the first 16 digits of its lineage; DIRECTORY/RUN-LINEAGE in
// place of DIRECTORY/RUN when that has the curves of another run of the same name. Goes on after the last whole record
// of the file. FAILED_PRECONDITION while another program writes it; DATA_LOSS when the coordinator's
// name of the run is one that no run can have (proto/run_config_rules.h) and that may lead out of DIRECTORY.
std::unique_ptr<FollowTarget> MakeTensorBoardTarget(const std::string& directory);

}  // namespace terse

#endif  // TERSE_TERSECTL_FOLLOW_TENSORBOARD_TARGET_H_
