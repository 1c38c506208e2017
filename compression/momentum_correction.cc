#include "compression/momentum_correction.h"

#include <algorithm>
#include <cmath>

#include "compression/exact_math.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr uint64_t kStages = 4;
constexpr double kStageFactor = 0.25;

}  // namespace

absl::StatusOr<std::string> MomentumCorrection::Accumulate(std::vector<float>* delta, const EncodeOptions& options) {
  if (clip_ > 0) Clip(absl::MakeSpan(*delta).subspan(0, parameters()));
  next_.resize(dense_.size());
  const float* const v = dense_.data();
  const float* const u = dense_.data() + size();
  for (size_t i = 0; i < size(); ++i) {
    const float velocity = momentum_ * u[i] + (*delta)[i];
    next_[size() + i] = velocity;
    next_[i] = v[i] + velocity;
  }
  TERSE_ASSIGN_OR_RETURN(std::string message, codec().Encode(absl::MakeConstSpan(next_).subspan(0, size()), options));
  dense_.swap(next_);
  return message;
}

void MomentumCorrection::Clip(absl::Span<float> delta) const {
  const auto square = [](float value) { return static_cast<double>(value) * static_cast<double>(value); };
  const double norm = std::sqrt(LaneSum(delta, square));
  if (!(norm > clip_)) return;
  const double factor = clip_ / norm;
  for (float& value : delta) value = static_cast<float>(static_cast<double>(value) * factor);
}

double WarmUpDensity(double density, int64_t warmup_rounds, uint64_t round) {
  if (round >= static_cast<uint64_t>(warmup_rounds)) return density;
  const uint64_t stage = kStages * round / static_cast<uint64_t>(warmup_rounds);
  double rate = kStageFactor;
  for (uint64_t i = 0; i < stage; ++i) rate *= kStageFactor;
  return std::max(density, rate);
}

absl::Span<const double> WarmUp::Rates(const CodecKey& key) {
  std::fill(rates_.begin(), rates_.end(), WarmUpDensity(density_, warmup_rounds_, key.round));
  return rates_;
}

}  // namespace terse
