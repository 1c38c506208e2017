// Dynamic sampling of Monte Carlo Gradient Quantization: Mordido, Van Keirsbilck, Keller (CVPR workshops 2020), section
// 3.2, Algorithm 3: every tensor learns its own number of samples per element, K, from how well the last message
// followed what it encoded:
//   d   = Wasserstein(|g| / ||g||_1, |q| / ||q||_1)
//   K <- K + delta_K * (d' - d)            d' of the message before
//
// Readings, where the paper leaves a choice:
// - The distance of equation (3) is that of two distributions over the tensor's indices, for those are the densities
//   and cumulative sums of Algorithm 1: neighbouring indices lie one apart, so d = sum over k of |P_k - Q_k| for the
//   cumulative sums P of |g| and Q of |q|: how far, in elements, a unit of mass is off. Sampling keeps |P_k - Q_k|
//   below 1/N, so d is below n/N = 1/K whatever the tensor's size.
// - The sign is the paper's: K rises while the distance falls.
// - K stays within a factor of kSamplingRange of its first value, and at most kMostSamples. A tensor of zeros, which
//   has no distribution, changes nothing.
// - The first message of a tensor has no d' and changes nothing.
// - Sums add in double in index order.
#ifndef TERSE_COMPRESSION_DYNAMIC_SAMPLING_H_
#define TERSE_COMPRESSION_DYNAMIC_SAMPLING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "compression/rate_schedule.h"

namespace terse {

constexpr double kSamplingRange = 16;

// d of two tensors of one size; nullopt where one of them is all zero. Both are finite.
absl::optional<double> IndexDistance(absl::Span<const float> exact, absl::Span<const float> quantized);

// One per client. The contract is RateSchedule's.
class DynamicSampling : public RateSchedule {
 public:
  // samples: the first K, 0 < samples <= kMostSamples. step: delta_K; 0 keeps K.
  DynamicSampling(const Layout& layout, double samples, double step);

  absl::Span<const double> Rates(const CodecKey&) override { return rates_; }

  // INVALID_ARGUMENT for a message that does not decode; the rates are as before then.
  absl::Status Observe(const Codec& codec, absl::Span<const float> update, absl::string_view message) override;

 private:
  const double least_;
  const double most_;
  const double step_;
  std::vector<double> rates_;                      // K of each tensor
  std::vector<absl::optional<double>> distances_;  // d'
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_DYNAMIC_SAMPLING_H_
