// What the settings that say 'auto' stand for in a run, where that depends on the run's other settings.
#ifndef TERSE_PROTO_RUN_CONFIG_AUTO_H_
#define TERSE_PROTO_RUN_CONFIG_AUTO_H_

#include <string>

#include "proto/run_config_rules.h"

namespace terse {

// Fields are in their ranges. A setting that does not say 'auto' is returned as it is.

// codec.feedback: adaptive_decay or own (compression/README.md, "Feedbacks").
std::string FeedbackOfRun(const v1::RunConfig& config);

// aggregation.rule: imputed_mean or mean (docs/ROBUSTNESS.md, "For speed, not for safety").
std::string AggregationRuleOfRun(const v1::RunConfig& config);

}  // namespace terse

#endif  // TERSE_PROTO_RUN_CONFIG_AUTO_H_
