#include "coordinator/aggregation/trimmed_mean.h"

#include <algorithm>
#include <cmath>

#include "core/status.h"

namespace terse {
namespace {

// A product that is whole but for its rounding counts as whole: 0.07 of 100 are 7.
constexpr double kRounding = 1e-9;

float TrimmedMean(double beta, absl::Span<float> votes) {
  const size_t count = votes.size();
  const auto cut = static_cast<size_t>(std::ceil(beta * static_cast<double>(count) - kRounding));
  const size_t side = std::min(cut, (count - 1) / 2);
  std::sort(votes.begin(), votes.end());
  double sum = 0;
  for (size_t i = side; i < count - side; ++i) sum += static_cast<double>(votes[i]);
  return static_cast<float>(sum / static_cast<double>(count - 2 * side));
}

}  // namespace

absl::Status TrimmedMeanRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                        absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  return AggregateVotes(
      codec, messages, absent_, [this](int64_t, absl::Span<float> votes) { return TrimmedMean(beta_, votes); }, step);
}

}  // namespace terse
