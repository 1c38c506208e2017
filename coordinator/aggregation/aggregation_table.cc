#include "coordinator/aggregation/aggregation_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coordinator/aggregation/bulyan.h"
#include "coordinator/aggregation/imputed_mean.h"
#include "coordinator/aggregation/krum.h"
#include "coordinator/aggregation/majority_vote.h"
#include "coordinator/aggregation/mean.h"
#include "coordinator/aggregation/median.h"
#include "coordinator/aggregation/trimmed_mean.h"
#include "core/status.h"

namespace terse {
namespace {

using Made = std::unique_ptr<const AggregationRule>;

struct Row {
  const char* name;
  Made (*make)(const AggregationSpec& spec, AbsentVotes absent);
};

constexpr Row kRows[] = {
    {"mean", [](const AggregationSpec&, AbsentVotes) -> Made { return std::make_unique<MeanRule>(); }},
    {"median", [](const AggregationSpec&, AbsentVotes absent) -> Made { return std::make_unique<MedianRule>(absent); }},
    {"trimmed_mean",
     [](const AggregationSpec& spec, AbsentVotes absent) -> Made {
       return std::make_unique<TrimmedMeanRule>(spec.trim, absent);
     }},
    {"krum",
     [](const AggregationSpec& spec, AbsentVotes) -> Made {
       return std::make_unique<KrumRule>("krum", spec.byzantine, /*keep=*/1);
     }},
    {"multi_krum",
     [](const AggregationSpec& spec, AbsentVotes) -> Made {
       return std::make_unique<KrumRule>("multi_krum", spec.byzantine, spec.keep);
     }},
    {"bulyan",
     [](const AggregationSpec& spec, AbsentVotes absent) -> Made {
       return std::make_unique<BulyanRule>(spec.byzantine, absent);
     }},
    {"majority_vote",
     [](const AggregationSpec&, AbsentVotes absent) -> Made { return std::make_unique<MajorityVoteRule>(absent); }},
    {"imputed_mean", [](const AggregationSpec&, AbsentVotes) -> Made { return std::make_unique<ImputedMeanRule>(); }},
};

absl::StatusOr<AbsentVotes> AbsentOf(const std::string& name) {
  if (name == "share") return AbsentVotes::kShare;
  if (name == "skip") return AbsentVotes::kSkip;
  if (name == "zero") return AbsentVotes::kZero;
  return absl::InvalidArgumentError(
      absl::StrCat("aggregation.absent = '", name, "'; known ones are share, skip, zero"));
}

}  // namespace

std::vector<std::string> AggregationRuleNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<const AggregationRule>> MakeAggregationRule(const AggregationSpec& spec) {
  TERSE_ASSIGN_OR_RETURN(const AbsentVotes absent, AbsentOf(spec.absent));
  if (!(spec.trim >= 0 && spec.trim <= 0.5) || spec.byzantine < 0 || spec.keep < 0) {
    return absl::InvalidArgumentError("aggregation.trim is 0 to 0.5, byzantine and keep are not negative");
  }
  for (const Row& row : kRows) {
    if (spec.rule == row.name) return row.make(spec, absent);
  }
  return absl::InvalidArgumentError(absl::StrCat("no aggregation rule '", spec.rule, "'; known ones are ",
                                                 absl::StrJoin(AggregationRuleNames(), ", ")));
}

}  // namespace terse
