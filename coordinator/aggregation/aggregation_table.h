// The one table of aggregation rules. Adding one is a file pair, a row in aggregation_table.cc, one in
// core/aggregation_facts.h, and its name in proto/terse/v1/run_config.proto.
#ifndef TERSE_COORDINATOR_AGGREGATION_AGGREGATION_TABLE_H_
#define TERSE_COORDINATOR_AGGREGATION_AGGREGATION_TABLE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/aggregation/aggregation_rule.h"
#include "core/run_config.h"

namespace terse {

// Names of all rows, in table order; the first is "mean".
std::vector<std::string> AggregationRuleNames();

// INVALID_ARGUMENT for an unknown name of a rule or of AggregationSpec::absent, with the known ones, and for parameters
// that are out of range.
absl::StatusOr<std::unique_ptr<const AggregationRule>> MakeAggregationRule(const AggregationSpec& spec);

}  // namespace terse

#endif  // TERSE_COORDINATOR_AGGREGATION_AGGREGATION_TABLE_H_
