#include "coordinator/server_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/feedback_table.h"
#include "coordinator/averaging_step.h"
#include "coordinator/svrg_step.h"
#include "core/aggregation_facts.h"
#include "core/epochs.h"
#include "core/id128.h"

namespace terse {
namespace {

// Refuses a rule that counts on residuals where clients have none.
absl::Status CheckResiduals(const RunConfig& config, const Codec& codec) {
  if (!FactsOf(config.aggregation.rule).needs_residuals || codec.traits().lossless) return absl::OkStatus();
  TERSE_ASSIGN_OR_RETURN(const std::string feedback, FeedbackOf(config.codec, codec));
  if (feedback != "none" && feedback != "discard") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("aggregation.rule = '", config.aggregation.rule,
                   "' counts on clients to keep what they do not send, and with "
                   "codec.name = '",
                   config.codec.name, "' and codec.feedback = '", config.codec.feedback,
                   "' they forget it: use rule = 'mean', or feedback = 'error_feedback'"));
}

}  // namespace

absl::Status CheckWeights(absl::Span<const float> weights) {
  const auto is_bad = [](float weight) { return !(std::abs(weight) <= kMostWeight); };
  bool bad = false;
  for (const float weight : weights) bad |= is_bad(weight);  // without a branch: all are looked at in every round
  if (!bad) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a step takes a weight to ", *std::find_if(weights.begin(), weights.end(), is_bad),
                   ", too far to go on with; if every client is honest, lower server.learning_rate or "
                   "train.optimizer.learning_rate"));
}

absl::StatusOr<std::unique_ptr<ServerStep>> ServerStep::Make(const RunConfig& config, const DownstreamCodecs& codecs) {
  const Layout& layout = codecs.updates.layout();
  if (config.rounds.buffered && layout.parameters() != layout.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rounds.mode = 'buffered' cannot average the buffers of model '", config.model.name,
                     "': changes of different weights' statistics do not add up; set model.buffers = 'local'"));
  }
  if (!FactsOf(config.aggregation.rule).takes_buffers && layout.parameters() != layout.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "aggregation.rule = '", config.aggregation.rule, "' cannot vote on the buffers of model '", config.model.name,
        "': their values are no directions; set model.buffers = 'local', or use another rule"));
  }
  TERSE_RETURN_IF_ERROR(CheckResiduals(config, codecs.updates));
  return HasEpochs(config) ? SvrgStep::Make(config, codecs) : AveragingStep::Make(config, codecs);
}

std::string ServerStep::RoundMessages(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                      int64_t total) const {
  return has_state() ? BuildDownstream(DownstreamMode::kForward, messages, samples, {}, total) : std::string();
}

absl::StatusOr<std::vector<float>> ServerStep::Repeat(int64_t base_version, absl::Span<const float> weights,
                                                      absl::string_view aggregate, absl::string_view downstream) {
  const absl::StatusOr<Forwarded> forwarded = ParseForwarded(aggregate);
  if (!forwarded.ok()) return absl::DataLossError(forwarded.status().message());
  absl::StatusOr<Result> again = MakeStep(base_version, weights, forwarded->updates, forwarded->samples,
                                          forwarded->total, CodedChoice(downstream));
  if (!again.ok()) return absl::DataLossError(again.status().message());
  if (again->downstream == downstream) return std::move(again->weights);
  if (IsStepDownstream(again->downstream) && IsStepDownstream(downstream)) {
    std::vector<float> announced(weights.begin(), weights.end());
    const absl::Status status = Apply(downstream, absl::MakeSpan(announced));
    if (status.ok() && HashWeights(announced) == HashWeights(again->weights)) return announced;
  }
  return absl::DataLossError("the round's updates do not give the message that clients received");
}

CodecKey ServerKey(const RunConfig& config, int64_t base_version) {
  return {config.seed, static_cast<uint64_t>(base_version) + 1, std::numeric_limits<uint64_t>::max()};
}

}  // namespace terse
