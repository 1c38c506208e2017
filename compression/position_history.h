// What the two ends of a line know of the positions that one tensor sent before: how long ago each element was sent,
// and which rows and columns are sent often. From it both make the same integer mass for every element, in proportion
// to how likely it is to be sent next, which shared_coder.h codes by. Arithmetic: compression/FORMAT.md, "Shared
// statistics".
#ifndef TERSE_COMPRESSION_POSITION_HISTORY_H_
#define TERSE_COMPRESSION_POSITION_HISTORY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace terse {

// Not thread-safe; safe to share between threads that only read. A byte for every element of the tensor, and little
// more. The state is a function of the calls of Add alone, in integers, so it is the same on every machine.
class PositionHistory {
 public:
  // Masses are near this on average.
  static constexpr int kMeanMassBits = 4;

  // A tensor of `rows` * `columns` elements, rows one after the other: 1 <= rows * columns < 2^31. Where one of the two
  // is below kFewestLines, rows and columns tell nothing and are not kept.
  PositionHistory(int64_t rows, int64_t columns);

  int64_t size() const { return size_; }
  // Whether nothing was added: all masses are equal then.
  bool empty() const { return now_ == 0 && in_block_ == 0; }

  // Takes in the positions of the next message that counts: increasing, below size(). None of them change nothing.
  void Add(absl::Span<const uint32_t> positions);

  // The masses, each 1..255, of the elements from `begin` on.
  void Masses(int64_t begin, absl::Span<uint8_t> masses) const;

 private:
  static constexpr int64_t kFewestLines = 8;
  static constexpr int kBins = 7;     // of age; 0 is for the oldest
  static constexpr int kLevels = 16;  // of the rate that row and column make
  static constexpr int kOldAge = 128;  // in blocks: older than any that counts

  using Cells = std::array<std::array<uint64_t, kLevels>, kBins>;

  // Counts of the sends of each row, or column, that fade, in sixteenths.
  struct Lines {
    std::vector<uint32_t> counts;
    std::vector<uint8_t> levels;  // log2 of count to mean, in eighths, plus 64
    uint64_t sum = 0;
  };

  static void UpdateLevels(Lines* lines);
  void Learn(absl::Span<const uint32_t> positions);
  void AddToLines(absl::Span<const uint32_t> positions);
  void AddToAges(absl::Span<const uint32_t> positions);
  void CloseBlock();
  // What follows from the rest.
  void UpdateTables();
  void UpdateBins();
  void UpdateMasses();

  int Bin(int64_t element) const { return bins_[static_cast<uint8_t>(now_ - block_of_[element])]; }
  // Calls visit(element, level) for the elements [begin, end).
  template <typename Visit>
  void ForEachLevel(int64_t begin, int64_t end, Visit visit) const;

  int64_t size_;
  int64_t columns_;
  bool has_lines_;
  Lines row_lines_;
  Lines column_lines_;
  int64_t until_fade_;  // positions until the counts are halved

  // A block is some messages in a row that have 1/256 of the elements together.
  std::vector<uint8_t> block_of_;     // in which each element was sent last, modulo 256
  int64_t now_ = 0;                   // number of the block that grows
  int64_t in_block_ = 0;              // positions in it
  std::array<int64_t, 256> blocks_{};  // positions in the newest 256 blocks, by number modulo 256

  int64_t messages_ = 0;
  Cells sent_{};  // of the elements of each cell, how many were sent, and how many there were; both fade
  Cells seen_{};

  std::array<uint8_t, 256> bins_{};  // of an age in blocks
  std::array<std::array<uint8_t, kLevels>, kBins> masses_{};
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_POSITION_HISTORY_H_
