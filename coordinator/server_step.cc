#include "coordinator/server_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/feedback_table.h"
#include "coordinator/server_optimizer/server_optimizer_table.h"
#include "core/codec_choices.h"
#include "core/status.h"

namespace terse {
namespace {

// The server, beside the clients' indexes, in the keys of stochastic codecs.
constexpr uint64_t kServerKey = std::numeric_limits<uint64_t>::max();

}  // namespace

ServerStep::ServerStep(const RunConfig& config, const DownstreamCodecs& codecs)
    : codecs_(codecs), mode_(config.downstream), seed_(config.seed), chooses_(DownstreamChoices(config).size() > 1) {}

absl::StatusOr<std::unique_ptr<ServerStep>> ServerStep::Make(const RunConfig& config, const DownstreamCodecs& codecs) {
  const Layout& layout = codecs.updates.layout();
  if (config.rounds.buffered && layout.parameters() != layout.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rounds.mode = 'buffered' cannot average the buffers of model '", config.model.name,
                     "': changes of different weights' statistics do not add up; set model.buffers = 'local'"));
  }
  std::unique_ptr<ServerStep> step(new ServerStep(config, codecs));
  TERSE_ASSIGN_OR_RETURN(step->optimizer_, MakeServerOptimizer(config.server));
  if (step->optimizer_ != nullptr && config.downstream == DownstreamMode::kForward) {
    return absl::InvalidArgumentError("a server optimizer needs a downstream other than forward");
  }
  if (config.downstream == DownstreamMode::kCoded) {
    TERSE_ASSIGN_OR_RETURN(step->feedback_, MakeFeedback(config.downstream_codec, codecs.coded));
  }
  TERSE_RETURN_IF_ERROR(step->Restore({}));
  return step;
}

size_t ServerStep::optimizer_floats() const {
  return optimizer_ == nullptr ? 0 : optimizer_->vectors() * static_cast<size_t>(codecs_.updates.layout().parameters());
}

// The server's messages are always applied.
size_t ServerStep::residual_floats() const {
  return feedback_ == nullptr || feedback_->forgets() ? 0 : feedback_->dense().size();
}

size_t ServerStep::state_size() const { return optimizer_floats() + residual_floats(); }

std::vector<float> ServerStep::state() const {
  std::vector<float> state = optimizer_state_;
  const absl::Span<const float> residual = feedback_ == nullptr ? absl::Span<const float>() : feedback_->dense();
  state.insert(state.end(), residual.begin(), residual.begin() + residual_floats());
  return state;
}

absl::Status ServerStep::Restore(absl::Span<const float> state) {
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

absl::StatusOr<std::string> ServerStep::Take(int64_t base_version, absl::Span<const absl::string_view> messages,
                                             absl::Span<const int64_t> samples, int64_t total, int64_t choice) {
  average_.resize(codecs_.updates.layout().size());
  TERSE_RETURN_IF_ERROR(AverageUpdates(codecs_.updates, messages, AveragingWeights(samples, total),
                                       AggregationThreads(messages), absl::MakeSpan(average_)));
  if (optimizer_ == nullptr && feedback_ == nullptr) return BuildDownstream(mode_, messages, samples, average_, total);
  TERSE_RETURN_IF_ERROR(Optimize());
  return feedback_ == nullptr ? BuildDenseDownstream(average_) : Encode(base_version, choice);
}

absl::Status ServerStep::Optimize() {
  float most = 0;
  for (float value : average_) most = std::max(most, std::abs(value));
  if (most > kMostAverage) {
    return absl::InvalidArgumentError(
        absl::StrCat("the average of the updates reaches ", most, ", too large to go on with"));
  }
  if (optimizer_ == nullptr) return absl::OkStatus();
  const size_t parameters = static_cast<size_t>(codecs_.updates.layout().parameters());
  // Buffers are a state, not a direction: they move by their average.
  optimizer_->Step(absl::MakeSpan(average_).subspan(0, parameters), absl::MakeSpan(optimizer_state_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ServerStep::Encode(int64_t base_version, int64_t choice) {
  const CodecKey key = {seed_, static_cast<uint64_t>(base_version) + 1, kServerKey};
  absl::StatusOr<std::string> message = feedback_->Compress(&average_, key, chooses_ ? choice : 0);
  if (!message.ok()) return absl::InternalError(absl::StrCat("the model's step: ", message.status().message()));
  // The residual is settled at once: it is only kept when the commit succeeds.
  TERSE_RETURN_IF_ERROR(feedback_->Settle(/*applied=*/true));
  return BuildCodedDownstream(*message);
}

std::string ServerStep::Aggregate(absl::Span<const absl::string_view> messages, absl::Span<const int64_t> samples,
                                  int64_t total) const {
  return has_state() ? BuildDownstream(DownstreamMode::kForward, messages, samples, {}, total) : std::string();
}

absl::Status ServerStep::Repeat(int64_t base_version, absl::string_view aggregate, absl::string_view downstream) {
  const absl::StatusOr<Forwarded> forwarded = ParseForwarded(aggregate);
  if (!forwarded.ok()) return absl::DataLossError(forwarded.status().message());
  const absl::StatusOr<std::string> again =
      Take(base_version, forwarded->updates, forwarded->samples, forwarded->total, CodedChoice(downstream));
  if (!again.ok()) return absl::DataLossError(again.status().message());
  if (*again == downstream) return absl::OkStatus();
  return absl::DataLossError("the round's updates do not give the message that clients received");
}

absl::Status ServerStep::Apply(absl::string_view downstream, absl::Span<float> weights) {
  return ApplyDownstream(codecs_, downstream, &average_, weights);
}

}  // namespace terse
