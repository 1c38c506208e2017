// The general Golomb code of the gaps between positions, of which Rice codes are the special case of a power of two.
// Golomb, Run-length encodings, IEEE Trans. Inf. Theory 12 (1966); the optimal parameter is that of Gallager and Van
// Voorhis, Optimal source codes for geometrically distributed integer alphabets, IEEE Trans. Inf. Theory 21 (1975).
//
// For a gap of z zeros: q = z div M in unary, r = z mod M in truncated binary: with w = floor(log2 M) and u = 2^(w+1) -
// M, w bits of r when r < u, otherwise the w + 1 bits of r + u. The code is split in two streams: the w upper bits of
// every remainder at a fixed width, then every quotient followed by the remainder's last bit where it has one.
#ifndef TERSE_COMPRESSION_GOLOMB_H_
#define TERSE_COMPRESSION_GOLOMB_H_

#include <cstdint>

#include "compression/position_coder.h"

namespace terse {

// The smallest M >= 1 with (1-p)^M + (1-p)^(M+1) <= 1 for p = count / size, in fixed-point arithmetic that is the rule
// (FORMAT.md), so that both ends agree: powers of Q = floor(2^64 (1-p)) are rounded down. 1 <= count <= size < 2^31;
// the result is below 2^31. Examples: (1, 100) gives 69, (1, 2) gives 1.
int64_t GolombParameter(int64_t count, int64_t size);

// The coder "golomb". Contract: PositionCoder's. M comes from count and size, so there is no header. A quotient is read
// to its one-bit, or to the stream's end, and refused when it is above size / M.
const PositionCoder& GolombCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_GOLOMB_H_
