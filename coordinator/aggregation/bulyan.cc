#include "coordinator/aggregation/bulyan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/median.h"
#include "core/status.h"

namespace terse {
namespace {

// The selected updates, in their order.
std::vector<size_t> Select(const Closeness& closeness, int64_t byzantine) {
  const auto size = static_cast<int64_t>(closeness.size());
  std::vector<bool> left(size, true);
  for (int64_t remaining = size; remaining > 2 * byzantine; --remaining) {
    const int64_t neighbours = std::max<int64_t>(1, remaining - byzantine - 2);
    int64_t best = -1;
    std::pair<double, double> least;
    for (int64_t i = 0; i < size; ++i) {
      if (!left[i]) continue;
      const std::pair<double, double> score = {closeness.Score(i, left, neighbours),
                                               closeness.Score(i, left, remaining)};
      if (best >= 0 && score >= least) continue;
      best = i;
      least = score;
    }
    left[best] = false;
  }
  std::vector<size_t> selected;
  for (int64_t i = 0; i < size; ++i) {
    if (!left[i]) selected.push_back(i);
  }
  return selected;
}

// The mean of the votes closest to their median: a window of the sorted ones.
float MeanAroundMedian(int64_t byzantine, absl::Span<float> votes) {
  const double median = MedianOf(votes);
  std::sort(votes.begin(), votes.end());
  size_t first = 0, last = votes.size() - 1;
  for (int64_t drop = std::min<int64_t>(2 * byzantine, static_cast<int64_t>(last)); drop > 0; --drop) {
    const bool above = std::abs(votes[last] - median) >= std::abs(votes[first] - median);
    above ? --last : ++first;
  }
  double sum = 0;
  for (size_t i = first; i <= last; ++i) sum += static_cast<double>(votes[i]);
  return static_cast<float>(sum / static_cast<double>(last - first + 1));
}

}  // namespace

absl::Status BulyanRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                   absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, byzantine_, step));
  std::vector<absl::string_view> selected;
  {
    TERSE_ASSIGN_OR_RETURN(const Closeness closeness, Closeness::Measure(codec, messages));
    for (size_t i : Select(closeness, byzantine_)) selected.push_back(messages[i]);
  }
  return AggregateVotes(
      codec, selected, absent_,
      [this](int64_t, absl::Span<float> votes) { return MeanAroundMedian(byzantine_, votes); }, step);
}

}  // namespace terse
