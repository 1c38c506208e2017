#include "compression/adaptive_decay.h"

#include <algorithm>

#include "absl/types/optional.h"
#include "core/status.h"

namespace terse {
namespace {

// A twentieth of what was seen 13 rounds ago: training changes over the run, and one round's regression is noisy.
constexpr double kKept = 0.8;

}  // namespace

AdaptiveDecay::AdaptiveDecay(const Codec* codec, std::unique_ptr<RateSchedule> schedule)
    : ErrorFeedback(codec, 1, std::move(schedule)),
      spacing_(static_cast<size_t>((parameters() + kMostObserved - 1) / kMostObserved)) {}

size_t AdaptiveDecay::Observed(size_t i) const {
  const size_t begin = i * spacing_;
  // The high bits of a multiple of the golden ratio (Knuth, The Art of Computer Programming, vol. 3, section 6.4).
  const size_t shift = static_cast<size_t>((i * 0x9e3779b97f4a7c15ULL) >> 40) % spacing_;
  return std::min(begin + shift, static_cast<size_t>(parameters()) - 1);
}

void AdaptiveDecay::Observe(absl::Span<const float> weights, absl::Span<const float> delta) {
  const bool first = weights_.empty();
  const size_t count = (static_cast<size_t>(parameters()) + spacing_ - 1) / spacing_;
  weights_.resize(count);
  delta_.resize(count);
  // Of the parameters that others changed alone: those of the last message take no part.
  for (const uint32_t i : sent_) weights_[i] = weights[Observed(i)];
  double answered = 0, moved = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = Observed(i);
    const double step = static_cast<double>(weights[at]) - static_cast<double>(weights_[i]);
    answered -= (static_cast<double>(delta[at]) - static_cast<double>(delta_[i])) * step;
    moved += step * step;
    weights_[i] = weights[at];
    delta_[i] = delta[at];
  }
  if (first) return;
  answered_ = kKept * answered_ + answered;
  moved_ = kKept * moved_ + moved;
}

double AdaptiveDecay::repeated() const { return moved_ > 0 ? std::clamp(answered_ / moved_, 0.0, 1.0) : 0; }

absl::StatusOr<std::string> AdaptiveDecay::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  set_decay(std::max(0.0, 1 - 2 * repeated()));
  TERSE_ASSIGN_OR_RETURN(std::string message, ErrorFeedback::Accumulate(delta, options));
  TERSE_ASSIGN_OR_RETURN(const absl::optional<std::vector<int64_t>> sent, codec().SentPositions(message));
  sent_.clear();
  if (!sent.has_value()) weights_.clear();  // a message that carries all parameters leaves none to learn from
  for (const int64_t position : sent.value_or(std::vector<int64_t>())) {
    const size_t place = static_cast<size_t>(position) / spacing_;
    if (Observed(place) == static_cast<size_t>(position)) sent_.push_back(static_cast<uint32_t>(place));
  }
  return message;
}

}  // namespace terse
