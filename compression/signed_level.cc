#include "compression/signed_level.h"

#include <algorithm>
#include <limits>

#include "compression/elias_gamma.h"
#include "compression/exact_math.h"

namespace terse {

float RoundToFiniteFloat(double positive) {
  return std::max(NearestFloat(positive), std::numeric_limits<float>::denorm_min());
}

int LevelBits(uint32_t signed_level) { return EliasGamma::Length(FloorLog2(signed_level >> 1)) + 1; }

void PutLevel(uint32_t signed_level, BitWriter* writer) {
  EliasGamma::Put(signed_level >> 1, writer);
  writer->Put(signed_level & 1, 1);
}

bool GetLevel(BitReader* reader, uint32_t* signed_level) {
  constexpr int kMostLog = 30;
  uint32_t magnitude = 0;
  uint32_t negative = 0;
  if (!EliasGamma::Get(kMostLog, reader, &magnitude) || !reader->Get(1, &negative)) return false;
  *signed_level = SignedLevel(magnitude, negative == 1);
  return true;
}

}  // namespace terse
