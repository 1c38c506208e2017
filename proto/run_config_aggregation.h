// The rules of run_config.proto for robust aggregation and the update policy that concern more than one field.
#ifndef TERSE_PROTO_RUN_CONFIG_AGGREGATION_H_
#define TERSE_PROTO_RUN_CONFIG_AGGREGATION_H_

#include "core/run_config.h"
#include "proto/run_config_rules.h"

namespace terse {

// The settings as the engines know them; the rule 'auto' is the one that it stands for in this run (RUN_FILE.md).
AggregationSpec AggregationOf(const v1::RunConfig& config);

// Appends every contradiction; part of CheckAcrossFields. Fields are in their ranges.
void CheckAggregation(const v1::RunConfig& config, ConfigViolations* violations);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_AGGREGATION_H_
