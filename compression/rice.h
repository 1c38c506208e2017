// The position coder of Sparse Binary Compression (Sattler et al. 2018, Algorithms 3 and 4, equation (5)): Golomb-Rice
// codes of the gaps between positions. Here the code is split in two streams: all quotients as one unary bitmap, read
// with count-trailing-zeros, and all remainders at a fixed width. The number of bits is that of Algorithm 3.
//
// For 0-based positions i_1 < i_2 < ... and i_0 = -1: d = i_j - i_{j-1}, q = (d - 1) div 2^b, r = (d - 1) mod 2^b.
// The bitmap holds q zeros and a one, the remainder stream the b bits of r, least significant first.
#ifndef TERSE_COMPRESSION_RICE_H_
#define TERSE_COMPRESSION_RICE_H_

#include <cstdint>

#include "compression/position_coder.h"

namespace terse {

// b* = max(0, 1 + floor(log2(log(phi - 1) / log(1 - p)))) for p = count / size, by integer comparison, so that both
// ends agree on every machine. 1 <= count <= size < 2^31; the result is at most 30. Example: (1, 100) gives 6.
int RiceParameter(int64_t count, int64_t size);

// The most bits that `count` positions below `size`, or any smaller number of them, take: remainders and quotients.
int64_t RiceMaxBits(int64_t count, int64_t size);

// The coder "rice": all remainders of the tensor, then all its quotients. Contract: PositionCoder's. b comes from count
// and size, so there is no header.
const PositionCoder& RiceCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_RICE_H_
