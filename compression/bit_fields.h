// Many fields of one width in a bit stream, one behind the other, by the SIMD kernels: the remainders of the Rice code,
// the symbols of quantizers.
#ifndef TERSE_COMPRESSION_BIT_FIELDS_H_
#define TERSE_COMPRESSION_BIT_FIELDS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

// Appends the low `width` bits of each value, 0 <= width <= 32. BitWriter::Reserve helps before many of them.
void PutFields(absl::Span<const uint32_t> values, int width, BitWriter* writer);

// Reads as many fields as `values` has, 0 <= width <= 32. The caller has checked that the reader has all of them.
void GetFields(int width, absl::Span<uint32_t> values, BitReader* reader);

}  // namespace terse

#endif  // TERSE_COMPRESSION_BIT_FIELDS_H_
