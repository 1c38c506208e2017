#include "proto/run_config_aggregation.h"

#include <string>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/aggregation_facts.h"

namespace terse {
namespace {

// The codecs that send an update's largest elements, and the feedbacks with which the rest comes later: there, a client
// that sent nothing at an element has only not got to it.
constexpr absl::string_view kSendTheLargest[] = {"sbc", "stc", "sbc_or_stc", "top_k", "sparseloco"};
constexpr absl::string_view kKeepTheRest[] = {"own", "error_feedback", "adaptive_decay"};

// Returns the rule that aggregation.rule = 'auto' stands for (docs/ROBUSTNESS.md, "For speed, not for safety").
absl::string_view AutomaticRule(const v1::RunConfig& config) {
  const bool synchronous = config.rounds().mode() == "synchronous" && config.server().epoch_length() == 0;
  const bool imputes = synchronous && absl::c_linear_search(kSendTheLargest, config.codec().name()) &&
                       absl::c_linear_search(kKeepTheRest, config.codec().feedback());
  return imputes ? "imputed_mean" : "mean";
}

// Settings that cannot be combined with a rule other than the mean.
void CheckRule(const v1::RunConfig& config, const AggregationFacts& facts, ConfigViolations* violations) {
  const std::tuple<const char*, bool, const char*> wants[] = {
      {"codec.downstream", facts.may_forward || config.codec().downstream() != "forward",
       "makes more of a round than its updates say, which is all that codec.downstream = 'forward' sends; "
       "use 'auto', 'dense' or a codec"},
      {"rounds.mode", config.rounds().mode() != "buffered",
       "compares updates of one model, and those of rounds.mode = 'buffered' come from several; use 'synchronous'"},
      {"rounds.weighting", facts.takes_weights || config.rounds().weighting() != "samples",
       "counts all updates alike, and rounds.weighting = 'samples' believes what a client says about itself; use "
       "'uniform'"},
      {"server.optimizer", config.server().epoch_length() == 0,
       "is for updates, and clients of a run with epochs send gradients; set server.epoch_length = 0 and another "
       "optimizer"},
  };
  for (const auto& [key, fits, text] : wants) {
    if (!fits) {
      violations->push_back({key, absl::StrCat("aggregation.rule = '", facts.name, "' ", text)});
    }
  }
}

// Every round that may close must be large enough for the rule.
void CheckLeast(const v1::RunConfig& config, const AggregationSpec& spec, ConfigViolations* violations) {
  const int64_t least = LeastUpdates(spec);
  const int64_t cohort = CohortSize(config.rounds());
  const std::string rule = absl::StrCat("aggregation.rule = '", spec.rule, "' with byzantine = ", spec.byzantine,
                                        " needs ", least, " updates in every round, and ");
  if (cohort < least) {
    violations->push_back({"aggregation.byzantine",
                           absl::StrCat(rule, "a round has ", cohort, "; raise rounds.clients or lower byzantine")});
  }
  if (least > 1 && cohort > kMostComparedUpdates) {
    violations->push_back(
        {"aggregation.rule",
         absl::StrCat("aggregation.rule = '", spec.rule,
                      "' compares every update of a round with every other, at most ", kMostComparedUpdates,
                      " of them, and a round has ", cohort, "; lower rounds.fraction, or use another rule")});
  }
  const int64_t quorum = config.rounds().quorum();
  if (quorum != 0 && quorum < least) {
    violations->push_back({"rounds.quorum", absl::StrCat(rule, "rounds.quorum = ", quorum,
                                                         " closes one with fewer; use at least as many, or 0")});
  }
}

}  // namespace

AggregationSpec AggregationOf(const v1::RunConfig& config) {
  const v1::Aggregation& given = config.aggregation();
  const absl::string_view rule = given.rule() == "auto" ? AutomaticRule(config) : given.rule();
  return {std::string(rule), given.absent(), given.trim(), given.byzantine(), given.keep()};
}

void CheckAggregation(const v1::RunConfig& config, ConfigViolations* violations) {
  const v1::Policy& policy = config.policy();
  const bool strict = UpdatePolicy{policy.norm_bound(), policy.z_score(), policy.cosine()}.is_strict();
  if (strict && config.server().epoch_length() > 0) {
    violations->push_back(
        {"policy", "[policy] looks at updates, and clients of a run with epochs send gradients; leave it out"});
  }
  const AggregationSpec aggregation = AggregationOf(config);
  const AggregationFacts facts = FactsOf(aggregation.rule);
  if (facts.is_average) return;
  CheckRule(config, facts, violations);
  CheckLeast(config, aggregation, violations);
  const int64_t honest = CohortSize(config.rounds()) - aggregation.byzantine;
  if (aggregation.rule != "multi_krum" || honest < 1 || aggregation.keep <= honest) return;
  violations->push_back({"aggregation.keep", absl::StrCat("aggregation.keep = ", aggregation.keep, " is more than the ",
                                                          honest, " updates that are left without byzantine = ",
                                                          aggregation.byzantine, "; use at most as many, or 0")});
}

}  // namespace terse
