// Run-length codes of the zeros between positions, with counters of a fixed width, as in section 3.4 of Monte Carlo
// Gradient Quantization (Mordido et al. 2020) and in Deep Gradient Compression (Lin et al. 2018). MCGQ's counter holds
// the longest run; here a shorter one may continue: a counter of width w holds 0 .. 2^w - 2 zeros that a position
// follows, and its largest value, 2^w - 1, stands for as many zeros without one.
#ifndef TERSE_COMPRESSION_RUN_LENGTH_H_
#define TERSE_COMPRESSION_RUN_LENGTH_H_

#include "compression/position_coder.h"

namespace terse {

// The coder "run_length": 5 bits with w, 1 <= w <= 31, the smallest width that gives the tensor the fewest counters'
// bits; then the counters. Another width than that is refused, by Finish.
const PositionCoder& RunLengthCoder();

// The coder "fixed16": w = 16 without a header, the 16 bits a position of Gradient Dropping (Aji and Heafield 2017) for
// tensors of any size. In tensors of at most 2^16 elements each position takes 16 bits, except that position 65535
// alone takes 32.
const PositionCoder& Fixed16Coder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_RUN_LENGTH_H_
