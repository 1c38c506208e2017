// Levels: integers that stand for a multiple of a scale, as mcgq sends them.
#ifndef TERSE_COMPRESSION_SIGNED_LEVEL_H_
#define TERSE_COMPRESSION_SIGNED_LEVEL_H_

#include <cstdint>

#include "compression/bit_stream.h"
#include "compression/exact_math.h"

namespace terse {

// A level in one word: 1 <= magnitude <= kMostLevel.
constexpr uint32_t kMostLevel = 0x7fffffff;
inline uint32_t SignedLevel(uint32_t magnitude, bool negative) { return 2 * magnitude + (negative ? 1 : 0); }

// A positive number as the nearest float32, but never zero or infinity.
float RoundToFiniteFloat(double positive);

// Returns the value that a SignedLevel decodes to: magnitude * scale, one product of doubles, rounded to float32; the
// largest float32 instead of infinity.
inline float LevelValue(float scale, uint32_t signed_level) {
  const float value = NearestFloat(static_cast<double>(signed_level >> 1) * static_cast<double>(scale));
  return FloatFromBits(FloatBits(value) ^ signed_level << 31);
}

// The Elias gamma code of the magnitude, then the sign: at most kMostLevelBits.
constexpr int kMostLevelBits = 62;
int LevelBits(uint32_t signed_level);
void PutLevel(uint32_t signed_level, BitWriter* writer);
// False where the stream ends or the magnitude would be above kMostLevel.
bool GetLevel(BitReader* reader, uint32_t* signed_level);

}  // namespace terse

#endif  // TERSE_COMPRESSION_SIGNED_LEVEL_H_
