// Silence that is not taken for zero: the step of a round's sparse updates in which an update that did not send an
// element counts, as far as it is trusted, as the mean of those that did. coordinator/aggregation/imputed_mean.h says
// why, and how the trust is measured. The coordinator makes steps with it, and so do receivers of forwarded updates
// (downstream.h): both from here, so that they have the same bits.
#ifndef TERSE_COMPRESSION_IMPUTATION_H_
#define TERSE_COMPRESSION_IMPUTATION_H_

#include <algorithm>

namespace terse {

// How much more than in the average an element may move: what an update that is alone there can make of it.
inline constexpr double kMostImputed = 4;

// A round's weights. Without weights every update has 1, `all` is their number and `scale` 1 / all; with weights `all`
// is their sum and `scale` 1.
struct Imputation {
  float trust = 0;  // 0 to 1; with 0 the step is the average, bit for bit
  double all = 0;
  float scale = 1;

  // The step of one element: `sum` is that of the weighted values that were sent, and `senders` that of the weights of
  // those who sent it, 0 where nobody did. It has no branches, so that loops over many elements become vector
  // instructions. Where nobody sent, `known` is all of the weight, so that the factor is 1.
  float Step(float sum, float senders) const {
    const double known = senders > 0 ? static_cast<double>(senders) : all;
    const double factor = std::min(kMostImputed, 1 + static_cast<double>(trust) * (all - known) / known);
    return static_cast<float>(static_cast<double>(sum * scale) * factor);
  }
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_IMPUTATION_H_
