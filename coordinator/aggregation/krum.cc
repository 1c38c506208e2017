#include "coordinator/aggregation/krum.h"

#include <algorithm>

#include "compression/aggregate.h"
#include "coordinator/aggregation/votes.h"
#include "core/aggregation_facts.h"
#include "core/status.h"

namespace terse {

absl::Status KrumRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                 absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, byzantine_, step));
  TERSE_ASSIGN_OR_RETURN(const Closeness closeness, Closeness::Measure(codec, messages));
  std::vector<size_t> chosen = closeness.ByScore(byzantine_);
  const int64_t spare = static_cast<int64_t>(messages.size()) - LeastUpdates(name_, byzantine_);
  const int64_t most = std::max<int64_t>(1, spare);
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(keep_ == 0 ? most : keep_)));
  std::sort(chosen.begin(), chosen.end());
  std::vector<absl::string_view> kept;
  for (size_t i : chosen) kept.push_back(messages[i]);
  return AverageUpdates(codec, kept, {}, AggregationThreads(kept), step);
}

}  // namespace terse
