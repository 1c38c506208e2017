// The rules of [control]: which runs a controller can plan, and which of its settings fit each other.
#ifndef TERSE_PROTO_RUN_CONFIG_CONTROL_H_
#define TERSE_PROTO_RUN_CONFIG_CONTROL_H_

#include "proto/run_config_rules.h"

namespace terse {

// Appends every contradiction; part of CheckAcrossFields. Fields are in their ranges.
void CheckControl(const v1::RunConfig& config, ConfigViolations* violations);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_CONTROL_H_
