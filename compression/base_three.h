// Ternary digits, five to a byte: 3^5 = 243 of a byte's 256 values, 1.6 bits a digit where their entropy is at most
// 1.585.
#ifndef TERSE_COMPRESSION_BASE_THREE_H_
#define TERSE_COMPRESSION_BASE_THREE_H_

#include <memory>

#include "compression/symbol_coder.h"

namespace terse {

// The coder of symbols 0, 1 and 2: digits d0 to d4 are the field of 8 bits d0 + 3 d1 + 9 d2 + 27 d3 + 81 d4; a bucket's
// last field is filled up with zeros. 8 * ceil(count / 5) bits. Refuses fields above 242 and digits other than 0 behind
// the last.
std::unique_ptr<const SymbolCoder> NewBaseThreeCoder();

}  // namespace terse

#endif  // TERSE_COMPRESSION_BASE_THREE_H_
