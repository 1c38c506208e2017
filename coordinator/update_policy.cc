#include "coordinator/update_policy.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "coordinator/aggregation/median.h"
#include "coordinator/aggregation/update_blocks.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr size_t kFewestCompared = 3;
// A normal distribution's deviation, in median distances from its median.
constexpr double kDeviation = 1.4826;
constexpr double kLeastDeviation = 0.01;  // of the median
// What is left of the others' sum is rounding alone.
constexpr double kNothing = 1e-12;

// The updates of one round and what is said against them.
class Judge {
 public:
  Judge(const Codec* codec, absl::Span<const absl::string_view> messages, const UpdatePolicy& policy)
      : codec_(codec), messages_(messages), policy_(policy), reasons_(messages.size()) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    TERSE_RETURN_IF_ERROR(MeasureNorms());
    if (policy_.norm_bound > 0) CheckBound();
    if (policy_.z_score > 0) CheckScores();
    if (policy_.cosine > -1) TERSE_RETURN_IF_ERROR(CheckDirections());
    return std::move(reasons_);
  }

 private:
  // Calls visit(block) for every block of the parameters.
  template <typename Visit>
  absl::Status ForEachBlock(const Visit& visit) const {
    TERSE_ASSIGN_OR_RETURN(UpdateBlocks blocks, UpdateBlocks::Open(*codec_, messages_, codec_->layout().parameters()));
    while (true) {
      TERSE_ASSIGN_OR_RETURN(const bool more, blocks.Next());
      if (!more) return absl::OkStatus();
      visit(blocks);
    }
  }

  absl::Status MeasureNorms() {
    norms_.assign(messages_.size(), 0);
    TERSE_RETURN_IF_ERROR(ForEachBlock([&](const UpdateBlocks& block) {
      for (size_t i = 0; i < norms_.size(); ++i) {
        for (float value : block.parts()[i].values)
          norms_[i] += static_cast<double>(value) * static_cast<double>(value);
      }
    }));
    for (double& norm : norms_) norm = std::sqrt(norm);
    return absl::OkStatus();
  }

  std::vector<size_t> Left() const {
    std::vector<size_t> left;
    for (size_t i = 0; i < reasons_.size(); ++i) {
      if (reasons_[i].empty()) left.push_back(i);
    }
    return left;
  }

  void CheckBound() {
    for (size_t i = 0; i < norms_.size(); ++i) {
      if (norms_[i] <= policy_.norm_bound) continue;
      reasons_[i] =
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
      reasons_[i] = absl::StrFormat(
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
      reasons_[i] = absl::StrFormat("its cosine to the round's other updates is %.4g, below policy.cosine = %.4g",
                                    cosine, policy_.cosine);
    }
    return absl::OkStatus();
  }

  const Codec* const codec_;
  const absl::Span<const absl::string_view> messages_;
  const UpdatePolicy& policy_;
  std::vector<double> norms_;
  std::vector<std::string> reasons_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> JudgeUpdates(const Codec& codec, absl::Span<const absl::string_view> messages,
                                                      const UpdatePolicy& policy) {
  return Judge(&codec, messages, policy).Run();
}

}  // namespace terse
