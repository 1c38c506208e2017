// The published packing of SparseLoCo's positions (sparseloco.h): 12 bits for the place of an element in its chunk of
// 4096. It is here for comparison: the coders of gaps are shorter.
#ifndef TERSE_COMPRESSION_CHUNK12_H_
#define TERSE_COMPRESSION_CHUNK12_H_

#include "compression/position_coder.h"

namespace terse {

// "chunk12". 12 bits a position. The publication knows how many positions each chunk has; here a tensor of several
// chunks begins with 14 bits that say how many each but the last has, or, where they do not all have as many, with 13
// bits for each of them. Format: compression/FORMAT.md.
const PositionCoder& Chunk12Coder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_CHUNK12_H_
