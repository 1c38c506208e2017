// The two float formats of 16 bits, in the low half of a word: half_precision.h says which numbers they hold. Without
// branches, so that loops over them become vector instructions; integer arithmetic but for numbers below the smallest
// normal one, whose rounding an exact float addition does.
#ifndef TERSE_COMPRESSION_HALF_BITS_H_
#define TERSE_COMPRESSION_HALF_BITS_H_

#include <algorithm>
#include <cstdint>

#include "compression/bit_stream.h"

namespace terse {

constexpr uint32_t kFp16Infinity = 0x7c00;
constexpr uint32_t kBf16Infinity = 0x7f80;
constexpr uint32_t kHalfSign = 0x8000;

// Returns bits / 2^count, rounded to nearest, ties to even. 1 <= count <= 31, bits < 2^31.
inline uint32_t ShiftRounded(uint32_t bits, int count) {
  return (bits + (uint32_t{1} << (count - 1)) - 1 + (bits >> count & 1)) >> count;
}

// Bits of the nearest binary16 of a finite float32: ties to even, saturating.
inline uint32_t ToFp16(float value) {
  constexpr uint32_t kRebias = 112u << 23;  // the difference of the exponents' biases, 127 - 15, in its place
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = MagnitudeBits(bits);
  const uint32_t normal = std::min(ShiftRounded(magnitude - kRebias, 13), kFp16Infinity - 1);
  // One half has the unit of the numbers below the smallest normal one, 2^-24, as its last place.
  const uint32_t small = FloatBits(FloatFromBits(std::min(magnitude, kRebias + (1u << 23))) + 0.5f) - FloatBits(0.5f);
  return (magnitude >= kRebias + (1u << 23) ? normal : small) | (bits >> 16 & kHalfSign);
}

// The float32 that equals these bits of a finite number, exactly.
inline float FromFp16(uint32_t half) {
  const uint32_t sign = (half & kHalfSign) << 16;
  const uint32_t magnitude = half & (kHalfSign - 1);
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t small = FloatBits(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1.0p-24f);
  return FloatFromBits(sign | (magnitude >= 0x400 ? normal : small));
}

// The same two functions for bfloat16.
inline uint32_t ToBf16(float value) {
  const uint32_t bits = FloatBits(value);
  return std::min(ShiftRounded(MagnitudeBits(bits), 16), kBf16Infinity - 1) | (bits >> 16 & kHalfSign);
}
inline float FromBf16(uint32_t half) { return FloatFromBits(half << 16); }

}  // namespace terse

#endif  // TERSE_COMPRESSION_HALF_BITS_H_
