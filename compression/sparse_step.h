// One exact message of a whole step of the model: the positions of its elements that are not zero, once, and their
// float32 values, once. Positions are Rice codes of the rarer of the two kinds of elements; the upper bits of values
// are a prefix code. So many updates of the same elements take no more than one, and the step of a server optimizer
// takes less than float32. Format: compression/FORMAT.md, "0x89".
#ifndef TERSE_COMPRESSION_SPARSE_STEP_H_
#define TERSE_COMPRESSION_SPARSE_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/layout.h"

namespace terse {

// Elements that are coded together: their positions have 16 bits.
inline constexpr int64_t kSparseStepBlock = int64_t{1} << 16;

// Appends the step, which is finite, to `out` if that takes fewer than `most_bytes` bytes; otherwise returns false with
// `out` unchanged. The element +0 is left out, -0 is not: it keeps the sign of a weight of -0. Reads the step twice; a
// third time where at most kMostPrefixSymbols values are distinct. Memory beside `out`: at most 3 MiB.
bool AppendSparseStep(absl::Span<const float> step, int64_t most_bytes, std::string* out);

// Reads it back: `step` has layout.size() elements and is overwritten, bit for bit as it was given. INVALID_ARGUMENT
// with the reason for bytes that make no step; FORMAT.md, "0x89", says what is checked. `step` is unspecified then.
// Memory: at most 2 MiB.
absl::Status ReadSparseStep(const Layout& layout, absl::string_view body, absl::Span<float> step);

}  // namespace terse

#endif  // TERSE_COMPRESSION_SPARSE_STEP_H_
