// Takes the result that a trainer has left in the shared memory, as a change of the weights.
#ifndef TERSE_TRAINER_TAKE_RESULT_H_
#define TERSE_TRAINER_TAKE_RESULT_H_

#include "absl/types/span.h"

namespace terse {

// Writes delta = left - weights, or delta = left without weights; all have one size. Whether all of it is finite. Reads
// each value once, so that whoever may change `left` meanwhile cannot get past the check. Moves the least that it must,
// three vectors: it writes past the cache, as memcpy does for vectors that the cache does not hold.
bool TakeResult(absl::Span<const float> left, absl::Span<const float> weights, absl::Span<float> delta);

}  // namespace terse

#endif  // TERSE_TRAINER_TAKE_RESULT_H_
