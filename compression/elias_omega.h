// QSGD's own code of quantized vectors: Alistarh et al., "QSGD" (NIPS 2017), section 3.2 and appendix A.2 and A.3,
// built on the recursive ("omega") code of Elias, "Universal codeword sets and representations of the integers" (1975).
// Elias(N), N >= 1: begin with "0"; while N > 1, put N in binary, most significant bit first, in front, and go on with
// N = (its bits) - 1. The words of 1, 2, 3, 4, 8, 16 are 0, 100, 110, 101000, 1110000, 10100100000.
//
// A symbol is 2 * level + (1 for a negative element), and 0 where the level is 0. A bucket of m symbols is one flag bit
// and
//   sparse (0): for every nonzero level, Elias(d), the sign bit, Elias(level), where d is how far its position is
//   behind
//               the nonzero one before, or behind -1; then Elias of the distance to position m, unless m - 1 was
//               nonzero.
//   dense (1):  for every element, Elias(level + 1), and the sign bit if the level is not 0.
// whichever is shorter, sparse if they are equal; a decoder refuses the other. The papers' text leaves open where a
// sparse bucket ends, hence the last distance, and signs zeros too in the dense code, which says nothing.
#ifndef TERSE_COMPRESSION_ELIAS_OMEGA_H_
#define TERSE_COMPRESSION_ELIAS_OMEGA_H_

#include <cstdint>
#include <memory>

#include "compression/bit_stream.h"
#include "compression/symbol_coder.h"

namespace terse {

// Bits of Elias(value), value >= 1.
int EliasOmegaBits(uint32_t value);

// Appends Elias(value), value >= 1.
void PutEliasOmega(uint32_t value, BitWriter* writer);

// Reads one code word. False when the stream ends in it or its value is above `most`, 1 <= most < 2^31.
bool GetEliasOmega(uint32_t most, BitReader* stream, uint32_t* value);

// The coder of buckets whose levels are 0..max_level, 1 <= max_level < 2^16. Cost: 1 + the smaller of the two sums
// above.
std::unique_ptr<const SymbolCoder> NewEliasOmegaCoder(uint32_t max_level);

}  // namespace terse

#endif  // TERSE_COMPRESSION_ELIAS_OMEGA_H_
