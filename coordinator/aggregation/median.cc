#include "coordinator/aggregation/median.h"

#include <algorithm>

#include "core/status.h"

namespace terse {
namespace {

template <typename Number>
Number Median(absl::Span<Number> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const Number below = *std::max_element(values.begin(), middle);
  return below / 2 + *middle / 2;  // the sum may overflow
}

}  // namespace

float MedianOf(absl::Span<float> values) { return Median(values); }
double MedianOf(absl::Span<double> values) { return Median(values); }

absl::Status MedianRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                   absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  return AggregateVotes(
      codec, messages, absent_, [](int64_t, absl::Span<float> votes) { return MedianOf(votes); }, step);
}

}  // namespace terse
