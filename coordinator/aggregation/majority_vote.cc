#include "coordinator/aggregation/majority_vote.h"

#include <algorithm>
#include <cmath>

#include "coordinator/aggregation/tensor_walk.h"
#include "coordinator/aggregation/update_blocks.h"
#include "core/median.h"
#include "core/status.h"

namespace terse {
namespace {

struct Magnitude {
  double sum = 0;
  int64_t count = 0;
};

// 1, -1, or 0 where neither side has more than half of the votes.
float Majority(absl::Span<const float> votes) {
  size_t up = 0, down = 0;
  for (float vote : votes) {
    up += vote > 0;
    down += vote < 0;
  }
  if (2 * up > votes.size()) return 1;
  return 2 * down > votes.size() ? -1 : 0;
}

}  // namespace

absl::StatusOr<std::vector<float>> MajorityVoteRule::SizesOf(const Codec& codec,
                                                             absl::Span<const absl::string_view> messages) {
  const Layout& layout = codec.layout();
  const size_t tensors = layout.tensors().size();
  std::vector<Magnitude> sent(messages.size() * tensors);  // of update i: from i * tensors on
  std::vector<TensorWalk> walks(messages.size(), TensorWalk(&layout));
  TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(codec, messages, layout.size()));
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
    if (!more) break;
    for (size_t i = 0; i < messages.size(); ++i) {
      const UpdatePart& part = blocks.parts()[i];
      for (size_t k = 0; k < part.positions.size(); ++k) {
        Magnitude& magnitude = sent[i * tensors + walks[i].At(blocks.begin() + part.positions[k])];
        magnitude.sum += static_cast<double>(std::abs(part.values[k]));
        magnitude.count += 1;
      }
    }
  }
  std::vector<float> sizes(tensors);
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    std::vector<double> means;
    for (size_t i = 0; i < messages.size(); ++i) {
      const Magnitude& magnitude = sent[i * tensors + tensor];
      if (magnitude.count > 0) means.push_back(magnitude.sum / static_cast<double>(magnitude.count));
    }
    if (!means.empty()) sizes[tensor] = static_cast<float>(MedianOf(absl::MakeSpan(means)));
  }
  return sizes;
}

absl::Status MajorityVoteRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                         absl::Span<const float> weights, absl::Span<float> step) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  TERSE_ASSIGN_OR_RETURN(const std::vector<float> sizes, SizesOf(codec, messages));
  TensorWalk walk(&codec.layout());
  return AggregateVotes(
      codec, messages, absent_,
      [&](int64_t position, absl::Span<float> votes) { return Majority(votes) * sizes[walk.At(position)]; }, step);
}

}  // namespace terse
