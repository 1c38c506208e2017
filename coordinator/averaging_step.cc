#include "coordinator/averaging_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/feedback_table.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "coordinator/server_optimizer/server_optimizer_table.h"
#include "core/aggregation_facts.h"
#include "core/codec_choices.h"
#include "core/status.h"

namespace terse {
namespace {

// The step becomes the new weights. Fails as CheckWeights, which would read a large model once more.
absl::Status AddWeights(absl::Span<const float> weights, absl::Span<float> step) {
  bool all_fit = true;
  for (size_t i = 0; i < step.size(); ++i) {
    step[i] += weights[i];
    all_fit &= std::abs(step[i]) <= kMostWeight;
  }
  return all_fit ? absl::OkStatus() : CheckWeights(step);
}

}  // namespace

AveragingStep::AveragingStep(const RunConfig& config, const DownstreamCodecs& codecs)
    : config_(config), codecs_(codecs), chooses_(DownstreamChoices(config).size() > 1) {}

absl::StatusOr<std::unique_ptr<ServerStep>> AveragingStep::Make(const RunConfig& config,
                                                                const DownstreamCodecs& codecs) {
  std::unique_ptr<AveragingStep> step(new AveragingStep(config, codecs));
  TERSE_ASSIGN_OR_RETURN(step->rule_, MakeAggregationRule(config.aggregation));
  TERSE_ASSIGN_OR_RETURN(step->optimizer_, MakeServerOptimizer(config.server));
  if (!step->is_average() && config.downstream == DownstreamMode::kForward) {
    return absl::InvalidArgumentError(
        "a server optimizer, or an aggregation rule other than mean, needs a downstream other than forward");
  }
  if (config.downstream == DownstreamMode::kCoded) {
    TERSE_ASSIGN_OR_RETURN(step->feedback_, MakeFeedback(config.downstream_codec, codecs.coded));
  }
  TERSE_RETURN_IF_ERROR(step->Restore({}, {}));
  return step;
}

size_t AveragingStep::optimizer_floats() const {
  return optimizer_ == nullptr ? 0 : optimizer_->vectors() * static_cast<size_t>(codecs_.updates.layout().parameters());
}

bool AveragingStep::is_average() const { return optimizer_ == nullptr && FactsOf(rule_->name()).is_average; }

// The server's messages are always applied.
size_t AveragingStep::residual_floats() const {
  return feedback_ == nullptr || feedback_->forgets() ? 0 : feedback_->dense().size();
}

size_t AveragingStep::state_size() const { return optimizer_floats() + residual_floats(); }

std::vector<float> AveragingStep::state() const {
  std::vector<float> state = optimizer_state_;
  const absl::Span<const float> residual = feedback_ == nullptr ? absl::Span<const float>() : feedback_->dense();
  state.insert(state.end(), residual.begin(), residual.begin() + residual_floats());
  return state;
}

absl::Status AveragingStep::Restore(absl::Span<const float>, absl::Span<const float> state) {
  optimizer_state_.resize(optimizer_floats());
  if (state.empty()) {
    if (optimizer_ != nullptr) optimizer_->Begin(absl::MakeSpan(optimizer_state_));
    if (feedback_ != nullptr) feedback_->Reset();
    return absl::OkStatus();
  }
  if (state.size() != state_size()) {
    return absl::DataLossError(absl::StrCat("the server's state has ", state.size(), " numbers instead of ",
                                            state_size(), ": restore the state directory from a backup"));
  }
  const auto residual = state.begin() + optimizer_state_.size();
  std::copy(state.begin(), residual, optimizer_state_.begin());
  return residual_floats() == 0 ? absl::OkStatus() : feedback_->Restore(state.subspan(optimizer_state_.size()), "", "");
}

absl::StatusOr<ServerStep::Result> AveragingStep::MakeStep(int64_t base_version, absl::Span<const float> weights,
                                                           absl::Span<const absl::string_view> messages,
                                                           absl::Span<const int64_t> samples, int64_t total,
                                                           int64_t choice) {
  average_.resize(codecs_.updates.layout().size());
  TERSE_RETURN_IF_ERROR(
      rule_->Aggregate(codecs_.updates, messages, AveragingWeights(samples, total), absl::MakeSpan(average_)));
  const std::vector<float> before = state();
  Result result;
  TERSE_ASSIGN_OR_RETURN(result.downstream, MakeMessage(base_version, messages, samples, total, choice));
  const absl::Status status = AddWeights(weights, absl::MakeSpan(average_));
  result.weights = std::move(average_);
  if (status.ok()) return result;
  if (has_state()) TERSE_RETURN_IF_ERROR(Restore({}, before));
  return status;
}

absl::StatusOr<std::string> AveragingStep::MakeMessage(int64_t base_version,
                                                       absl::Span<const absl::string_view> messages,
                                                       absl::Span<const int64_t> samples, int64_t total,
                                                       int64_t choice) {
  if (is_average() && feedback_ == nullptr)
    return BuildDownstream(config_.downstream, messages, samples, average_, total);
  Optimize();
  if (feedback_ == nullptr) return BuildStepDownstream(config_.downstream, average_);
  TERSE_ASSIGN_OR_RETURN(const std::string message, Encode(base_version, choice));
  // Clients take the step that the message has, and the residual keeps the rest.
  std::fill(average_.begin(), average_.end(), 0.0f);
  TERSE_RETURN_IF_ERROR(codecs_.coded->AddDecoded(message, 1.0f, absl::MakeSpan(average_)));
  return BuildCodedDownstream(message);
}

void AveragingStep::Optimize() {
  if (optimizer_ == nullptr) return;
  const size_t parameters = static_cast<size_t>(codecs_.updates.layout().parameters());
  // Buffers are a state, not a direction: they move by their average.
  optimizer_->Step(absl::MakeSpan(average_).subspan(0, parameters), absl::MakeSpan(optimizer_state_));
}

absl::StatusOr<std::string> AveragingStep::Encode(int64_t base_version, int64_t choice) {
  absl::StatusOr<std::string> message =
      feedback_->Compress(&average_, ServerKey(config_, base_version), chooses_ ? choice : 0);
  if (!message.ok()) return absl::InternalError(absl::StrCat("the model's step: ", message.status().message()));
  // The residual is settled at once: it is only kept when the commit succeeds.
  TERSE_RETURN_IF_ERROR(feedback_->Settle(/*applied=*/true));
  return *std::move(message);
}

absl::Status AveragingStep::Apply(absl::string_view downstream, absl::Span<float> weights) {
  return ApplyDownstream(codecs_, downstream, &average_, weights);
}

}  // namespace terse
