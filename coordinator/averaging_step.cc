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
  if (!step->may_forward() && config.downstream == DownstreamMode::kForward) {
    return absl::InvalidArgumentError(
        "a server optimizer, or an aggregation rule other than mean and imputed_mean, needs a downstream other than "
        "forward");
  }
  if (config.downstream == DownstreamMode::kCoded) {
    TERSE_ASSIGN_OR_RETURN(step->state_->feedback, MakeFeedback(config.downstream_codec, codecs.coded));
  }
  TERSE_RETURN_IF_ERROR(step->Restore({}, {}));
  return step;
}

size_t AveragingStep::optimizer_floats() const {
  return optimizer_ == nullptr ? 0 : optimizer_->vectors() * static_cast<size_t>(codecs_.updates.layout().parameters());
}

bool AveragingStep::may_forward() const { return optimizer_ == nullptr && FactsOf(rule_->name()).may_forward; }

// The server's messages are always applied.
size_t AveragingStep::residual_floats() const {
  return !is_coded() || state_->feedback->forgets() ? 0 : state_->feedback->dense().size();
}

size_t AveragingStep::state_size() const { return optimizer_floats() + residual_floats(); }

HeldState AveragingStep::state() {
  if (!has_state()) return {};
  if (held_ == nullptr) held_ = std::make_shared<Memory>();
  HeldState held;
  if (optimizer_floats() > 0) held.parts.emplace_back(state_->optimizer);
  if (residual_floats() > 0) held.parts.push_back(state_->feedback->dense());
  // The numbers are in state_ until the next round replaces them, and in held_ from then on.
  held.owner = std::make_shared<std::pair<std::shared_ptr<State>, std::shared_ptr<Memory>>>(state_, held_);
  return held;
}

absl::Status AveragingStep::Restore(absl::Span<const float>, absl::Span<const float> state) {
  state_->optimizer.resize(optimizer_floats());
  if (state.empty()) {
    if (optimizer_ != nullptr) optimizer_->Begin(absl::MakeSpan(state_->optimizer));
    if (is_coded()) state_->feedback->Reset();
    return absl::OkStatus();
  }
  if (state.size() != state_size()) {
    return absl::DataLossError(absl::StrCat("the server's state has ", state.size(), " numbers instead of ",
                                            state_size(), ": restore the state directory from a backup"));
  }
  std::copy_n(state.begin(), optimizer_floats(), state_->optimizer.begin());
  return residual_floats() == 0 ? absl::OkStatus()
                                : state_->feedback->Restore(state.subspan(optimizer_floats()), "", "");
}

absl::StatusOr<ServerStep::Result> AveragingStep::MakeStep(int64_t base_version, absl::Span<const float> weights,
                                                           absl::Span<const absl::string_view> messages,
                                                           absl::Span<const int64_t> samples, int64_t total,
                                                           int64_t choice) {
  if (average_.empty()) average_.swap(spare_);
  average_.resize(codecs_.updates.layout().size());
  float trust = 0;
  TERSE_RETURN_IF_ERROR(rule_->AggregateToForward(codecs_.updates, messages, AveragingWeights(samples, total),
                                                  absl::MakeSpan(average_), &trust));
  Optimize();
  Result result;
  if (is_coded()) {
    TERSE_ASSIGN_OR_RETURN(result.downstream, MakeCodedMessage(base_version, choice));
  } else {
    result.downstream = MakeMessage(messages, samples, total, trust);
  }
  const absl::Status status = AddWeights(weights, absl::MakeSpan(step_));
  if (!status.ok()) {
    if (is_coded()) TERSE_RETURN_IF_ERROR(state_->feedback->TakeBack(&average_));
    return status;
  }
  TERSE_RETURN_IF_ERROR(Keep());
  result.weights = std::move(step_);
  return result;
}

void AveragingStep::Optimize() {
  if (optimizer_ == nullptr) return;
  next_optimizer_.resize(optimizer_floats());
  const size_t parameters = static_cast<size_t>(codecs_.updates.layout().parameters());
  // Buffers are a state, not a direction: they move by their average.
  optimizer_->Step(absl::MakeSpan(average_).subspan(0, parameters), state_->optimizer, absl::MakeSpan(next_optimizer_));
}

std::string AveragingStep::MakeMessage(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                       int64_t total, float trust) {
  // Receivers allow for rounds.clients forwarded updates. With bundles, which no run of mode kForward takes, there are
  // more.
  const bool fits =
      config_.downstream == DownstreamMode::kForward || static_cast<int64_t>(messages.size()) <= config_.rounds.clients;
  const bool forwards = may_forward() && fits;
  std::string message = forwards ? BuildDownstream(config_.downstream, messages, samples, average_, total, trust)
                                 : BuildStepDownstream(config_.downstream, average_);
  step_ = std::exchange(average_, {});
  return message;
}

absl::StatusOr<std::string> AveragingStep::MakeCodedMessage(int64_t base_version, int64_t choice) {
  const absl::StatusOr<std::string> message =
      state_->feedback->Compress(&average_, ServerKey(config_, base_version), chooses_ ? choice : 0);
  if (!message.ok()) return absl::InternalError(absl::StrCat("the model's step: ", message.status().message()));
  // Clients take the step that the message has, and the residual keeps the rest.
  if (step_.empty()) step_.swap(spare_);
  step_.assign(codecs_.updates.layout().size(), 0.0f);
  const absl::Status decoded = codecs_.coded->AddDecoded(*message, 1.0f, absl::MakeSpan(step_));
  if (!decoded.ok()) return absl::InternalError(absl::StrCat("the model's step: ", decoded.message()));
  return BuildCodedDownstream(*message);
}

absl::Status AveragingStep::Keep() {
  if (optimizer_ != nullptr) {
    state_->optimizer.swap(next_optimizer_);
    HandOver(&next_optimizer_);
  }
  if (is_coded()) {
    TERSE_RETURN_IF_ERROR(state_->feedback->Settle(/*applied=*/true));
    HandOver(state_->feedback->StateBefore(&average_));
  }
  held_ = nullptr;
  return absl::OkStatus();
}

void AveragingStep::HandOver(std::vector<float>* memory) {
  if (held_ != nullptr) held_->push_back(std::exchange(*memory, {}));
}

absl::Status AveragingStep::Apply(absl::string_view downstream, absl::Span<float> weights) {
  return ApplyDownstream(codecs_, downstream, &average_, weights);
}

}  // namespace terse
