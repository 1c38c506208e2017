// The one table of controllers. Adding one is a file pair, a row in controller_table.cc and its name in
// proto/terse/v1/run_config.proto; its choices of codings are in core/codec_choices.cc.
#ifndef TERSE_COORDINATOR_CONTROL_CONTROLLER_TABLE_H_
#define TERSE_COORDINATOR_CONTROL_CONTROLLER_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/control/controller.h"
#include "core/run_config.h"

namespace terse {

// Names of all rows, in table order; the first is "fixed".
std::vector<std::string> ControllerNames();

// Null for "fixed": every round is as train.local_steps and [codec] say. `parameters` is the number of the model's, the
// same for every process of a run. INVALID_ARGUMENT for an unknown name, with the known ones.
absl::StatusOr<std::unique_ptr<Controller>> MakeController(const RunConfig& config, int64_t parameters);

}  // namespace terse

#endif  // TERSE_COORDINATOR_CONTROL_CONTROLLER_TABLE_H_
