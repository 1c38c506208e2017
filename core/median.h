// The median of numbers: of an odd count the one in the middle, of an even count the mean of the two in the middle.
//
//   1, 5, 100 -> 5;  1, 5 -> 3
#ifndef TERSE_CORE_MEDIAN_H_
#define TERSE_CORE_MEDIAN_H_

#include <algorithm>

#include "absl/types/span.h"

namespace terse {

// Returns the median of at least one finite value, and reorders the values. O(values). Thread-safe.
template <typename Number>
Number MedianOf(absl::Span<Number> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const Number below = *std::max_element(values.begin(), middle);
  return below / 2 + *middle / 2;  // the sum may overflow
}

}  // namespace terse

#endif  // TERSE_CORE_MEDIAN_H_
