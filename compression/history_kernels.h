// The inner loop of PositionHistory::Masses, for every SIMD target (simd.h). Not for use by anything else.
#ifndef TERSE_COMPRESSION_HISTORY_KERNELS_H_
#define TERSE_COMPRESSION_HISTORY_KERNELS_H_

#include <cstdint>

namespace terse {

constexpr int kHistoryAges = 3;
constexpr int kHistoryBins = 1 + 2 * kHistoryAges;
constexpr int kHistoryLevels = 16;

// The tables that give an element's mass from its cell: the limits of the classes of age, and the mass of each cell.
struct HistoryTables {
  // Ages in blocks, below 128: an element is in the first class whose limit is above its age, or in none (bin 0).
  uint8_t age_limits[kHistoryAges];
  // Bins 1..kHistoryAges are the classes of elements that were sent last on the other side, the rest on this side.
  alignas(16) uint8_t masses[kHistoryBins][kHistoryLevels];
};

// Some elements of a row.
struct HistoryRow {
  const uint8_t* last;     // blocks, modulo 128, and sides (the upper bit), of their last sends
  const uint8_t* columns;  // levels of their columns, at most 127
  uint8_t row;             // level of the row, at most 127
  uint8_t now;             // the block that grows, modulo 128
  uint8_t side;            // of the message: 0 or 1
};

// Level of an element, 0..15, from the levels of its row and its column.
constexpr int kLowestLevelSum = 96;
constexpr int kLevelSumShift = 2;

// Elements behind those that are asked for are asked for soon: their part of the history is fetched meanwhile.
constexpr int64_t kHistoryAhead = 4096;

struct HistoryKernels {
  // Writes masses[i] of the elements 0..count-1.
  void (*masses)(const HistoryTables& tables, const HistoryRow& row, int64_t count, uint8_t* masses);
};

const HistoryKernels& GetHistoryKernels();

}  // namespace terse

#endif  // TERSE_COMPRESSION_HISTORY_KERNELS_H_
