#include "compression/exact_math.h"

#include <algorithm>

#include "compression/fetch_ahead.h"
#include "compression/quantize_kernels.h"
#include "compression/select_kernels.h"

namespace terse {

double SumOfMagnitudes(absl::Span<const float> values) {
  double partial[kPartialSums] = {};
  GetQuantizeKernels().add_magnitudes(values.data(), static_cast<int64_t>(values.size()), partial);
  return TotalOfLanes(partial);
}

double SumOfSquares(absl::Span<const float> values) {
  double partial[kPartialSums] = {};
  GetQuantizeKernels().add_squares(values.data(), static_cast<int64_t>(values.size()), partial);
  return TotalOfLanes(partial);
}

float LargestMagnitude(absl::Span<const float> values) {
  return FloatFromBits(GetSelectKernels().max_magnitude(values.data(), static_cast<int64_t>(values.size())));
}

Magnitudes MagnitudesOf(absl::Span<const float> values) {
  constexpr size_t kStep = 4096;  // elements that stay in the first-level cache for the second statistic
  static_assert(kStep % kPartialSums == 0, "a step begins with the first partial sum");
  uint32_t largest = 0;
  double partial[kPartialSums] = {};
  for (size_t at = 0; at < values.size(); at += kStep) {
    const absl::Span<const float> step = values.subspan(at, kStep);
    const int64_t size = static_cast<int64_t>(step.size());
    FetchAheadToRead(step.data(), static_cast<int64_t>(sizeof(float)) * size);
    largest = std::max(largest, GetSelectKernels().max_magnitude(step.data(), size));
    GetQuantizeKernels().add_magnitudes(step.data(), size, partial);
  }
  return {FloatFromBits(largest), TotalOfLanes(partial)};
}

}  // namespace terse
