// Elias' universal codes of the gaps between positions: Elias, Universal codeword sets and representations of the
// integers, IEEE Trans. Inf. Theory 21 (1975). They need no parameter and no statistics, and win where positions crowd
// together in a tensor too small to pay for a table. The codes are those of d = zeros + 1 >= 1, with N = floor(log2 d):
//   gamma: N in unary, then the N bits of d below its leading one.
//   delta: N + 1 as in gamma, then the same N bits.
#ifndef TERSE_COMPRESSION_ELIAS_H_
#define TERSE_COMPRESSION_ELIAS_H_

#include <cstdint>

#include "compression/gap_class.h"
#include "compression/position_coder.h"

namespace terse {

// Returns a number of bits that positions with such gaps take at least.
int64_t EliasGammaLeastBits(const GapClassCounts& counts);
int64_t EliasDeltaLeastBits(const GapClassCounts& counts);

// The coders "elias_gamma" and "elias_delta". Contract: PositionCoder's. No header; N > 30 is refused.
const PositionCoder& EliasGammaCoder();
const PositionCoder& EliasDeltaCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_ELIAS_H_
