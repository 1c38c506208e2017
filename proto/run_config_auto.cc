#include "proto/run_config_auto.h"

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"

namespace terse {
namespace {

// The codecs that send an update's largest elements, so that silence says only that others were larger.
constexpr absl::string_view kSendTheLargest[] = {"sbc", "stc", "sbc_or_stc", "top_k", "sparseloco"};
// Those of them whose own feedback has a decay.
constexpr absl::string_view kHaveADecay[] = {"sparseloco"};

// The feedbacks with which the rest is sent later.
constexpr absl::string_view kKeepTheRest[] = {"own", "error_feedback", "adaptive_decay"};

bool IsPlain(const v1::RunConfig& config) {
  return config.rounds().mode() == "synchronous" && config.server().epoch_length() == 0;
}

}  // namespace

std::string FeedbackOfRun(const v1::RunConfig& config) {
  const v1::Codec& codec = config.codec();
  if (codec.feedback() != "auto") return codec.feedback();
  // A controller that changes the local steps changes the deltas, too, from which the decay is measured.
  const bool measures = IsPlain(config) && config.control().name() == "fixed" && codec.decay() == 1 &&
                        absl::c_linear_search(kSendTheLargest, codec.name()) &&
                        !absl::c_linear_search(kHaveADecay, codec.name());
  return measures ? "adaptive_decay" : "own";
}

std::string AggregationRuleOfRun(const v1::RunConfig& config) {
  const std::string& rule = config.aggregation().rule();
  if (rule != "auto") return rule;
  const bool imputes = IsPlain(config) && absl::c_linear_search(kSendTheLargest, config.codec().name()) &&
                       absl::c_linear_search(kKeepTheRest, FeedbackOfRun(config));
  return imputes ? "imputed_mean" : "mean";
}

}  // namespace terse
