// The position coder that takes, for each tensor, the shortest of the others.
#ifndef TERSE_COMPRESSION_AUTO_CODER_H_
#define TERSE_COMPRESSION_AUTO_CODER_H_

#include "compression/position_coder.h"

namespace terse {

// The coder "auto": a selector and the chosen coder's bits. The selector is the bit 1 for rice; otherwise the bit 0 and
// two bits, 0 for golomb, 1 for gap_class, 2 for elias_gamma, 3 for elias_delta. The choice has the fewest bits with
// its selector, the first of them on a tie, so a tensor never takes more than one bit more than with rice.
//
// Contract: PositionCoder's, with one exception: a reader does not check that the choice is the shortest, which would
// take coding the positions again with all coders. So a tensor has up to five encodings that decode; what Put writes is
// still one of them.
const PositionCoder& AutoCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_AUTO_CODER_H_
