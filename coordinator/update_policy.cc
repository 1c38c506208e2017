#include "coordinator/update_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "coordinator/aggregation/update_blocks.h"
#include "coordinator/server_optimizer/server_optimizer.h"
#include "core/epochs.h"
#include "core/median.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr size_t kFewestCompared = 3;
// A normal distribution's deviation, in median distances from its median.
constexpr double kDeviation = 1.4826;
constexpr double kLeastDeviation = 0.01;  // of the median
// A sum of the others' directions below this is rounding alone.
constexpr double kNothing = 1e-12;

// The updates of one round and what is said against them.
class Judge {
 public:
  Judge(const Codec* codec, absl::Span<const MeasuredUpdate> updates, const UpdatePolicy& policy,
        absl::Span<const double> earlier)
      : codec_(codec), updates_(updates), policy_(policy), earlier_(earlier), judgements_(updates.size()) {
    for (const MeasuredUpdate& update : updates) norms_.push_back(update.size.norm);
  }

  absl::StatusOr<std::vector<Judgement>> Run() {
    CheckElements();
    if (policy_.norm_ratio > 0) CheckRatios();
    if (policy_.norm_bound > 0) CheckBound();
    if (policy_.z_score > 0) CheckScores();
    if (policy_.cosine > -1) TERSE_RETURN_IF_ERROR(CheckDirections());
    return std::move(judgements_);
  }

 private:
  // Calls visit(block) for every block of the parameters.
  template <typename Visit>
  absl::Status ForEachBlock(const Visit& visit) const {
    std::vector<absl::string_view> messages;
    for (const MeasuredUpdate& update : updates_) messages.push_back(update.message);
    TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(*codec_, messages, codec_->layout().parameters()));
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
      if (!more) return absl::OkStatus();
      visit(blocks);
    }
  }

  std::vector<size_t> Left() const {
    std::vector<size_t> left;
    for (size_t i = 0; i < judgements_.size(); ++i) {
      if (judgements_[i].reason.empty()) left.push_back(i);
    }
    return left;
  }

  void CheckElements() {
    for (size_t i = 0; i < updates_.size(); ++i) {
      if (updates_[i].size.largest <= kMostAverage) continue;
      judgements_[i] = {absl::StrFormat("it has an element of %.4g, and no update may have one beyond %.4g",
                                        updates_[i].size.largest, kMostAverage),
                        /*grave=*/true};
    }
  }

  void CheckRatios() {
    const std::vector<size_t> left = Left();
    std::vector<double> known;
    for (size_t i : left) known.push_back(norms_[i]);
    const bool alone = known.size() >= kFewestCompared;
    if (!alone) known.insert(known.end(), earlier_.begin(), earlier_.end());
    if (known.size() < kFewestCompared) return;
    const double median = MedianOf(absl::MakeSpan(known));
    if (median == 0) return;
    for (size_t i : left) {
      const int64_t folded = std::min(updates_[i].folded, kMostFolded);
      const double ratio = norms_[i] / median;
      if (ratio <= policy_.norm_ratio * static_cast<double>(1 + folded)) continue;
      judgements_[i] = {
          absl::StrFormat("its norm of %.4g is %.4g times the median of %s, which is %.4g; policy.norm_ratio = "
                          "%.4g allows %.4g times",
                          norms_[i], ratio, alone ? "the round's" : "what clients sent last", median,
                          policy_.norm_ratio, policy_.norm_ratio * static_cast<double>(1 + folded)),
          /*grave=*/true};
    }
  }

  void CheckBound() {
    for (size_t i = 0; i < norms_.size(); ++i) {
      if (norms_[i] <= policy_.norm_bound) continue;
      judgements_[i].reason =
          absl::StrFormat("its norm of %.4g is above policy.norm_bound = %.4g", norms_[i], policy_.norm_bound);
    }
  }

  void CheckScores() {
    const std::vector<size_t> left = Left();
    if (left.size() < kFewestCompared) return;
    std::vector<double> norms, distances;
    for (size_t i : left) norms.push_back(norms_[i]);
    const double median = MedianOf(absl::MakeSpan(norms));
    for (size_t i : left) distances.push_back(std::abs(norms_[i] - median));
    const double deviation = std::max(kDeviation * MedianOf(absl::MakeSpan(distances)), kLeastDeviation * median);
    if (deviation == 0) return;
    for (size_t i : left) {
      const double score = (norms_[i] - median) / deviation;
      if (score <= policy_.z_score) continue;
      judgements_[i].reason = absl::StrFormat(
          "its norm of %.4g is %.4g deviations above the round's median of %.4g, more than "
          "policy.z_score = %.4g",
          norms_[i], score, median, policy_.z_score);
    }
  }

  absl::Status CheckDirections() {
    std::vector<size_t> left = Left();
    left.erase(std::remove_if(left.begin(), left.end(), [&](size_t i) { return norms_[i] == 0; }), left.end());
    if (left.size() < kFewestCompared) return absl::OkStatus();
    std::vector<double> sum, products(norms_.size());  // of the unit vectors; of each with their sum
    double square = 0;                                 // of the sum
    TERSE_RETURN_IF_ERROR(ForEachBlock([&](const UpdateBlocks& block) {
      sum.assign(block.size(), 0);
      for (size_t i : left) {
        const UpdatePart& part = block.parts()[i];
        for (size_t k = 0; k < part.values.size(); ++k) sum[part.positions[k]] += part.values[k] / norms_[i];
      }
      for (size_t i : left) {
        const UpdatePart& part = block.parts()[i];
        for (size_t k = 0; k < part.values.size(); ++k) {
          products[i] += part.values[k] / norms_[i] * sum[part.positions[k]];
        }
      }
      for (double one : sum) square += one * one;
    }));
    for (size_t i : left) {
      const double others = square - 2 * products[i] + 1;
      if (others <= kNothing) continue;
      const double cosine = (products[i] - 1) / std::sqrt(others);
      if (cosine >= policy_.cosine) continue;
      judgements_[i].reason = absl::StrFormat(
          "its cosine to the round's other updates is %.4g, below policy.cosine = %.4g", cosine, policy_.cosine);
    }
    return absl::OkStatus();
  }

  const Codec* const codec_;
  const absl::Span<const MeasuredUpdate> updates_;
  const UpdatePolicy& policy_;
  const absl::Span<const double> earlier_;
  std::vector<double> norms_;
  std::vector<Judgement> judgements_;
};

}  // namespace

bool ComparesNorms(const RunConfig& config) { return config.policy.norm_ratio > 0 && !HasEpochs(config); }

absl::StatusOr<std::vector<Judgement>> JudgeUpdates(const Codec& codec, absl::Span<const MeasuredUpdate> updates,
                                                    const UpdatePolicy& policy, absl::Span<const double> earlier) {
  return Judge(&codec, updates, policy, earlier).Run();
}

}  // namespace terse
