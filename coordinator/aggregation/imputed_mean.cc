#include "coordinator/aggregation/imputed_mean.h"

#include <algorithm>
#include <vector>

#include "coordinator/aggregation/tensor_walk.h"
#include "coordinator/aggregation/votes.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr double kLargestFactor = 4;

// What the votes of some coordinates say about each other.
struct Pairs {
  double products = 0;  // of the votes of a coordinate with each other, every pair twice
  double most = 0;      // what that would be if they were equal
};

double Sum(absl::Span<const float> votes) {
  double sum = 0;
  for (float vote : votes) sum += static_cast<double>(vote);
  return sum;
}

void Compare(absl::Span<const float> votes, Pairs* pairs) {
  double squares = 0;
  for (float vote : votes) squares += static_cast<double>(vote) * static_cast<double>(vote);
  const double sum = Sum(votes);
  pairs->products += sum * sum - squares;
  pairs->most += static_cast<double>(votes.size() - 1) * squares;
}

double MeanAgreement(absl::Span<const Pairs> tensors) {
  double sum = 0;
  int64_t count = 0;
  for (const Pairs& pairs : tensors) {
    if (pairs.most <= 0) continue;
    sum += std::max(0.0, pairs.products / pairs.most);
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

absl::StatusOr<double> ImputedMeanRule::Agreement(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                  absl::Span<float> scratch) {
  std::vector<Pairs> tensors(codec.layout().tensors().size());
  TensorWalk walk(&codec.layout());
  const auto compare = [&](int64_t position, absl::Span<float> votes) {
    if (votes.size() > 1 && position < codec.layout().parameters()) Compare(votes, &tensors[walk.At(position)]);
    return 0.0f;
  };
  TERSE_RETURN_IF_ERROR(AggregateVotes(codec, messages, AbsentVotes::kSkip, compare, scratch));
  return MeanAgreement(tensors);
}

absl::Status ImputedMeanRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                        absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  TERSE_ASSIGN_OR_RETURN(const double agreement, Agreement(codec, messages, step));
  const double trust = std::clamp(2 * agreement - 1, 0.0, 1.0);
  const auto updates = static_cast<double>(messages.size());
  const auto impute = [&](int64_t, absl::Span<float> votes) {
    const auto senders = static_cast<double>(votes.size());
    const double factor = std::min(kLargestFactor, 1 + trust * (updates - senders) / senders);
    return static_cast<float>(Sum(votes) / updates * factor);
  };
  return AggregateVotes(codec, messages, AbsentVotes::kSkip, impute, step);
}

}  // namespace terse
