// Vectors on their way through the shared memory: the weights to the trainer, and its result back as a change of them.
#ifndef TERSE_TRAINER_TAKE_RESULT_H_
#define TERSE_TRAINER_TAKE_RESULT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace terse {

// Writes delta = left - weights, or delta = left without weights; all have one size. Whether all of it is finite. Reads
// each value once, so that whoever may change `left` meanwhile cannot get past the check. Moves the least that it must,
// three vectors: it writes past the cache, as memcpy does for vectors that the cache does not hold.
bool TakeResult(absl::Span<const float> left, absl::Span<const float> weights, absl::Span<float> delta);
// Likewise for a result of bfloat16. The weights that the trainer began with are rounded, as RoundToBfloat16 does, so
// that what it did not change has a delta of zero.
bool TakeResult(absl::Span<const uint16_t> left, absl::Span<const float> weights, absl::Span<float> delta);

// The nearest bfloat16, ties to even, of finite values; the largest finite one for those beyond it. As many as
// `values`.
void RoundToBfloat16(absl::Span<const float> values, absl::Span<uint16_t> rounded);

}  // namespace terse

#endif  // TERSE_TRAINER_TAKE_RESULT_H_
