// The rules of [control]: which runs a controller can plan, and which of its settings fit each other.
#ifndef TERSE_PROTO_RUN_CONFIG_CONTROL_H_
#define TERSE_PROTO_RUN_CONFIG_CONTROL_H_

#include <optional>

#include "proto/run_config_rules.h"

namespace terse {

// Returns the first contradiction, if there is one.
std::optional<ConfigViolation> CheckControl(const v1::RunConfig& config);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_CONTROL_H_
