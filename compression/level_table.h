// Levels that stand for the values of a table, as sparseloco sends them: every element has a level of a fixed number of
// bits, and the values of the levels that occur travel behind them.
#ifndef TERSE_COMPRESSION_LEVEL_TABLE_H_
#define TERSE_COMPRESSION_LEVEL_TABLE_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"

namespace terse {

constexpr int kMostLevelTableBits = 8;
// The value of each level; those of levels that do not occur have no meaning.
using LevelTable = std::array<float, 1 << kMostLevelTableBits>;

// Divides the values into 2^bits levels, 1 <= bits <= 8, by the rule of sparseloco.h, and sets `levels` to the level of
// each value and `table` to the means of the levels. The values are finite. The same bits on every machine.
void QuantizeToTable(absl::Span<const float> values, int bits, absl::Span<uint32_t> levels, LevelTable* table);

// Appends the levels in `bits` bits each, then the float32 of every level that occurs, in increasing order of levels.
void PutLevels(absl::Span<const uint32_t> levels, int bits, const LevelTable& table, BitWriter* writer);
// Returns the number of bits that PutLevels writes.
int64_t LevelsBits(absl::Span<const uint32_t> levels, int bits);
// Returns the most bits that `count` levels take.
int64_t MaxLevelsBits(int64_t count, int bits);

// Moves the stream past `count` levels and their table, which it reads. INVALID_ARGUMENT where the stream ends, and for
// values that are not finite, that do not increase with their levels, or that are -0: QuantizeToTable makes none of
// them.
absl::Status GetLevelTable(int64_t count, int bits, BitReader* stream, LevelTable* table);

}  // namespace terse

#endif  // TERSE_COMPRESSION_LEVEL_TABLE_H_
