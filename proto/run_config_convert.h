// The run as the engines know it, from the run as it is written and sent.
#ifndef TERSE_PROTO_RUN_CONFIG_CONVERT_H_
#define TERSE_PROTO_RUN_CONFIG_CONVERT_H_

#include "absl/status/statusor.h"
#include "core/run_config.h"
#include "terse/v1/run_config.pb.h"

namespace terse {

// Validates and converts, after WithLaterDefaults. A quorum of 0 becomes half of the cohort, or what the rule of
// aggregation needs. INVALID_ARGUMENT as ValidateRunConfig.
absl::StatusOr<RunConfig> ToCore(const v1::RunConfig& config);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_CONVERT_H_
