#include "coordinator/aggregation/votes.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/aggregation/update_blocks.h"
#include "core/aggregation_facts.h"
#include "core/status.h"

namespace terse {
namespace {

// The votes of one block, those of a coordinate side by side in the order of the updates.
class Ballot {
 public:
  Ballot(size_t updates, AbsentVotes absent, CombineVotes combine)
      : updates_(updates), absent_(absent), combine_(combine) {}

  void Count(const UpdateBlocks& block, float* step) {
    counts_.assign(block.size(), 0);
    votes_.resize(block.size() * updates_);
    for (const UpdatePart& part : block.parts()) {
      for (size_t i = 0; i < part.positions.size(); ++i) {
        const size_t at = part.positions[i];
        votes_[at * updates_ + counts_[at]++] = part.values[i];
      }
    }
    // Adding zero turns a negative zero into a positive one, so that the order of two zeros does not show.
    for (int64_t at = 0; at < block.size(); ++at) step[at] = counts_[at] == 0 ? 0.0f : Decide(block.begin(), at) + 0.0f;
  }

 private:
  float Decide(int64_t begin, int64_t at) {
    float* const votes = votes_.data() + at * updates_;
    const size_t senders = counts_[at];
    if (absent_ == AbsentVotes::kZero) {
      std::fill(votes + senders, votes + updates_, 0.0f);
      return combine_(begin + at, absl::MakeSpan(votes, updates_));
    }
    const float value = combine_(begin + at, absl::MakeSpan(votes, senders));
    if (absent_ == AbsentVotes::kSkip) return value;
    return static_cast<float>(static_cast<double>(value) * static_cast<double>(senders) /
                              static_cast<double>(updates_));
  }

  const size_t updates_;
  const AbsentVotes absent_;
  const CombineVotes combine_;
  std::vector<uint32_t> counts_;
  std::vector<float> votes_;
};

}  // namespace

absl::Status AggregateVotes(const Codec& codec, absl::Span<const absl::string_view> messages, AbsentVotes absent,
                            CombineVotes combine, absl::Span<float> step) {
  TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(codec, messages, codec.layout().size()));
  Ballot ballot(messages.size(), absent, combine);
  while (true) {
    TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
    if (!more) return absl::OkStatus();
    ballot.Count(blocks, step.data() + blocks.begin());
  }
}

absl::Status CheckRound(absl::string_view rule, const Codec& codec, absl::Span<const absl::string_view> messages,
                        absl::Span<const float> weights, int64_t byzantine, absl::Span<const float> step) {
  const int64_t least = LeastUpdates(rule, byzantine);
  if (static_cast<int64_t>(messages.size()) < least) {
    return absl::InvalidArgumentError(absl::StrCat("aggregation.rule = '", rule, "' needs ", least,
                                                   " updates with these settings, and the round has ",
                                                   messages.size()));
  }
  if (!weights.empty() && !FactsOf(rule).takes_weights) {
    return absl::InvalidArgumentError(absl::StrCat("aggregation.rule = '", rule, "' counts all updates alike"));
  }
  if (!weights.empty() && weights.size() != messages.size()) {
    return absl::InvalidArgumentError(absl::StrCat(weights.size(), " weights for ", messages.size(), " updates"));
  }
  if (!FactsOf(rule).takes_buffers && codec.layout().parameters() != codec.layout().size()) {
    return absl::InvalidArgumentError(absl::StrCat("aggregation.rule = '", rule, "' cannot vote on a model's buffers"));
  }
  if (step.size() == static_cast<size_t>(codec.layout().size())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the step has ", step.size(), " elements, the model ", codec.layout().size()));
}

}  // namespace terse
