// Sums and roundings that give the same bits on every machine: plain IEEE operations in a fixed order, which compilers
// may vectorise without changing a result.
#ifndef TERSE_COMPRESSION_EXACT_MATH_H_
#define TERSE_COMPRESSION_EXACT_MATH_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

constexpr float kLargestFloat = std::numeric_limits<float>::max();

// The total of the partial sums of LaneSum.
inline double TotalOfLanes(const double (&sums)[8]) {
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// The sum of term(value), a double, over all values: eight partial sums, element i in sum i mod 8, each in index order;
// then ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)).
template <typename Term>
double LaneSum(absl::Span<const float> values, Term term) {
  double sums[8] = {};
  const size_t whole = values.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += term(values[i + lane]);
  }
  for (size_t i = whole; i < values.size(); ++i) sums[i - whole] += term(values[i]);
  return TotalOfLanes(sums);
}

// LaneSum of the magnitudes and of the squares.
double SumOfMagnitudes(absl::Span<const float> values);
double SumOfSquares(absl::Span<const float> values);

// The largest magnitude; 0 for no values; NaN or infinity when there is one among them.
float LargestMagnitude(absl::Span<const float> values);

// Both in one pass.
struct Magnitudes {
  float largest = 0;
  double sum = 0;
};
Magnitudes MagnitudesOf(absl::Span<const float> values);

// The float nearest to value >= 0, ties to even, and the largest finite one beyond the range.
inline float NearestFloat(double value) {
  return value < static_cast<double>(kLargestFloat) ? static_cast<float>(value) : kLargestFloat;
}

// The smallest float at or above value >= 0, and the largest finite one beyond the range.
inline float FloatAtLeast(double value) {
  const float nearest = NearestFloat(value);
  if (static_cast<double>(nearest) >= value || nearest == kLargestFloat) return nearest;
  return FloatFromBits(FloatBits(nearest) + 1);
}

}  // namespace terse

#endif  // TERSE_COMPRESSION_EXACT_MATH_H_
