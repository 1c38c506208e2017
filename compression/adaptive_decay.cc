#include "compression/adaptive_decay.h"

#include <algorithm>

#include "absl/types/optional.h"
#include "core/status.h"

namespace terse {
namespace {

// A twentieth of what was seen 13 rounds ago: training changes over the run, and one round's regression is noisy.
constexpr double kKept = 0.8;

}  // namespace

void AdaptiveDecay::Observe(absl::Span<const float> weights, absl::Span<const float> delta) {
  if (!weights_.empty()) {
    // The parameters that others changed alone: those of the last message take no part.
    for (const int64_t position : sent_) weights_[position] = weights[position];
    double answered = 0, moved = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const double step = static_cast<double>(weights[i]) - static_cast<double>(weights_[i]);
      answered -= (static_cast<double>(delta[i]) - static_cast<double>(delta_[i])) * step;
      moved += step * step;
    }
    answered_ = kKept * answered_ + answered;
    moved_ = kKept * moved_ + moved;
  }
  weights_.assign(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(parameters()));
  delta_.assign(delta.begin(), delta.begin() + static_cast<std::ptrdiff_t>(parameters()));
}

double AdaptiveDecay::repeated() const { return moved_ > 0 ? std::clamp(answered_ / moved_, 0.0, 1.0) : 0; }

absl::StatusOr<std::string> AdaptiveDecay::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  set_decay(std::max(0.0, 1 - 2 * repeated()));
  TERSE_ASSIGN_OR_RETURN(std::string message, ErrorFeedback::Accumulate(delta, options));
  TERSE_ASSIGN_OR_RETURN(absl::optional<std::vector<int64_t>> sent, codec().SentPositions(message));
  if (sent.has_value()) {
    sent_ = *std::move(sent);
  } else {
    weights_.clear();  // a message that carries all parameters leaves none to learn from
  }
  return message;
}

}  // namespace terse
