// The Elias gamma code of integers value >= 1 (Elias 1975): N = floor(log2 value) in unary, then the N bits below the
// leading one.
#ifndef TERSE_COMPRESSION_ELIAS_GAMMA_H_
#define TERSE_COMPRESSION_ELIAS_GAMMA_H_

#include <cstdint>

#include "compression/bit_stream.h"

namespace terse {

// Returns floor(log2(value)); value >= 1.
constexpr int FloorLog2(uint32_t value) { return 31 - __builtin_clz(value); }

struct EliasGamma {
  static constexpr char kName[] = "elias_gamma";

  // Bits of any value with FloorLog2(value) == log.
  static int Length(int log) { return 2 * log + 1; }

  static void Put(uint32_t value, BitWriter* writer) {
    writer->PutUnary(FloorLog2(value));
    PutMantissa(value, writer);
  }

  // False when the stream ends or the value has more than max_log + 1 <= 31 bits.
  static bool Get(int max_log, BitReader* reader, uint32_t* value) {
    uint64_t log;
    if (!reader->GetUnary(&log) || log > static_cast<uint64_t>(max_log)) return false;
    return GetMantissa(static_cast<int>(log), reader, value);
  }

  // The bits of `value` below its leading one.
  static void PutMantissa(uint32_t value, BitWriter* writer) {
    const int log = FloorLog2(value);
    writer->Put(value - (uint32_t{1} << log), log);
  }

  static bool GetMantissa(int log, BitReader* reader, uint32_t* value) {
    if (!reader->Get(log, value)) return false;
    *value += uint32_t{1} << log;
    return true;
  }
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ELIAS_GAMMA_H_
