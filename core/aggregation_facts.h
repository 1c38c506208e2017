// The facts about a rule of aggregation for those who do not have the rule: the checks of a configuration, the forecast
// of its traffic and the server's step. The rules themselves are in coordinator/aggregation.
#ifndef TERSE_CORE_AGGREGATION_FACTS_H_
#define TERSE_CORE_AGGREGATION_FACTS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/run_config.h"

namespace terse {

struct AggregationFacts {
  absl::string_view name;
  // The updates that a round needs at least, and how many more for each that may be hostile
  // (AggregationSpec::byzantine): Blanchard et al. 2017 and El Mhamdi et al. 2018 say what theirs need.
  int64_t least = 1;
  int64_t least_for_each = 0;
  // Whether the step is the average of the updates.
  bool is_average = false;
  // Whether who has the updates can make the step too, so that a round may forward them (compression/downstream.h).
  bool may_forward = false;
  // Whether updates may have weights; the other rules count them alike.
  bool takes_weights = false;
  // Whether it can make something of a model's buffers, whose values are no directions.
  bool takes_buffers = true;
  // Whether it counts on clients to keep what they did not send.
  bool needs_residuals = false;
};

// One row a rule, in the order of AggregationRuleNames (coordinator/aggregation/aggregation_table.h).
inline constexpr AggregationFacts kAggregationFacts[] = {
    {"mean", 1, 0, /*is_average=*/true, /*may_forward=*/true, /*takes_weights=*/true},
    {"median"},
    {"trimmed_mean"},
    {"krum", 3, 2},
    {"multi_krum", 3, 2},
    {"bulyan", 3, 4},
    {"majority_vote", 1, 0, /*is_average=*/false, /*may_forward=*/false, /*takes_weights=*/false,
     /*takes_buffers=*/false},
    {"imputed_mean", 1, 0, /*is_average=*/false, /*may_forward=*/true, /*takes_weights=*/true, /*takes_buffers=*/true,
     /*needs_residuals=*/true},
};

// The row of a rule; for a name that has none, one that allows most.
inline constexpr AggregationFacts FactsOf(absl::string_view rule) {
  for (const AggregationFacts& facts : kAggregationFacts) {
    if (facts.name == rule) return facts;
  }
  return {rule};
}

// Fewest updates that the rule can be given with these settings.
inline constexpr int64_t LeastUpdates(absl::string_view rule, int64_t byzantine) {
  const AggregationFacts facts = FactsOf(rule);
  return facts.least + facts.least_for_each * byzantine;
}
inline int64_t LeastUpdates(const AggregationSpec& spec) { return LeastUpdates(spec.rule, spec.byzantine); }

}  // namespace terse

#endif  // TERSE_CORE_AGGREGATION_FACTS_H_
