#include "coordinator/aggregation/imputed_mean.h"

#include <algorithm>
#include <vector>

#include "compression/aggregate.h"
#include "compression/quantize_kernels.h"
#include "coordinator/aggregation/tensor_walk.h"
#include "coordinator/aggregation/update_blocks.h"
#include "coordinator/aggregation/votes.h"
#include "core/status.h"

namespace terse {
namespace {

// What the votes of some coordinates say about each other.
struct Pairs {
  double products = 0;  // of the weighted votes of every two updates at a coordinate, twice
  double most = 0;      // what that would be if they were equal
};

// The sums of a round's updates, and how far the updates agree.
class Tally {
 public:
  // The step has an element for each of the layout, which must outlive it as the step must.
  Tally(const Layout* layout, absl::Span<float> step)
      : layout_(*layout), walk_(layout), step_(step), senders_(step.size()), pairs_(layout->tensors().size()) {
    std::fill(step_.begin(), step_.end(), 0.0f);
  }

  // Blocks come in the order of the model. Without weights, each update has 1.
  void Add(const UpdateBlocks& block, absl::Span<const float> weights) {
    squares_.assign(block.size(), 0);
    walk_.At(block.begin());
    for (size_t i = 0; i < block.parts().size(); ++i) {
      AddPart(block.parts()[i], block.begin(), weights.empty() ? 1.0f : weights[i]);
    }
  }

  // The trust of the header.
  float Trust() const { return static_cast<float>(std::clamp(2 * Agreement() - 1, 0.0, 1.0)); }

  // Makes the step of the sums. False when an element of it is not finite.
  bool Impute(const Imputation& imputation) {
    return GetQuantizeKernels().impute(static_cast<int64_t>(step_.size()), imputation, senders_.data(), step_.data());
  }

 private:
  // A of the header; 0 where no coordinate was sent twice.
  double Agreement() const {
    double sum = 0;
    int64_t count = 0;
    for (const Pairs& pairs : pairs_) {
      if (pairs.most <= 0) continue;
      sum += std::max(0.0, pairs.products / pairs.most);
      ++count;
    }
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

  void AddPart(const UpdatePart& part, int64_t begin, float weight) {
    TensorWalk walk = walk_;
    for (size_t i = 0; i < part.positions.size(); ++i) {
      const int64_t position = begin + part.positions[i];
      const double value = part.values[i];
      const double others = senders_[position];
      double& squares = squares_[part.positions[i]];
      if (others > 0 && position < layout_.parameters()) {
        Pairs& pairs = pairs_[walk.At(position)];
        pairs.products += 2 * weight * value * static_cast<double>(step_[position]);
        pairs.most += weight * (squares + value * value * others);
      }
      squares += weight * value * value;
      senders_[position] += weight;
      step_[position] += weight * part.values[i];
    }
  }

  const Layout& layout_;
  TensorWalk walk_;  // at the block's first tensor
  const absl::Span<float> step_;
  std::vector<float> senders_;   // W_j
  std::vector<double> squares_;  // of a block: w_i v_ij^2, summed
  std::vector<Pairs> pairs_;     // of each tensor
};

}  // namespace

absl::Status ImputedMeanRule::Aggregate(const Codec& codec, absl::Span<const absl::string_view> messages,
                                        absl::Span<const float> weights, absl::Span<float> step) const {
  float trust = 0;
  return AggregateToForward(codec, messages, weights, step, &trust);
}

absl::Status ImputedMeanRule::AggregateToForward(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                 absl::Span<const float> weights, absl::Span<float> step,
                                                 float* trust) const {
  TERSE_RETURN_IF_ERROR(CheckRound(name(), codec, messages, weights, /*byzantine=*/0, step));
  TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(codec, messages, codec.layout().size()));
  Tally tally(&codec.layout(), step);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
    if (!more) break;
    tally.Add(blocks, weights);
  }
  *trust = tally.Trust();
  if (tally.Impute(MakeImputation(messages.size(), weights, *trust))) return absl::OkStatus();
  return SumOverflows(codec, /*begin=*/0, step);
}

}  // namespace terse
