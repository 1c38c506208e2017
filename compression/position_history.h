// The statistics that the two ends of a line keep of the positions that one tensor sent before: how long ago each
// element was sent, and which rows and columns are sent often, in messages of either side (of which the elements are
// positive, or negative). From it both make the same integer mass for every element, in proportion to how likely it is
// to be sent next, which shared_coder.h codes by. Arithmetic: compression/FORMAT.md, "Shared statistics".
#ifndef TERSE_COMPRESSION_POSITION_HISTORY_H_
#define TERSE_COMPRESSION_POSITION_HISTORY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/history_kernels.h"

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
  // `side` is 1 for a message whose elements are all negative, otherwise 0.
  void Add(absl::Span<const uint32_t> positions, int side);

  // Appends the whole state (FORMAT.md, "State of a history"): StateBytes() bytes.
  void AppendState(std::string* out) const;
  int64_t StateBytes() const;
  // The history of a tensor of that shape whose state `state` is. INVALID_ARGUMENT for bytes that no history has; what
  // it takes is safe to use, though not every such state can come from messages.
  static absl::StatusOr<PositionHistory> FromState(int64_t rows, int64_t columns, absl::string_view state);

  // The masses, each 1..255, of the elements from `begin` on, for a message of that side.
  void Masses(int side, int64_t begin, absl::Span<uint8_t> masses) const;

 private:
  static constexpr int64_t kFewestLines = 8;
  static constexpr int kAges = kHistoryAges;
  static constexpr int kBins = kHistoryBins;
  static constexpr int kLevels = kHistoryLevels;  // of the rate that row and column make
  static constexpr int kBlockNumbers = 128;
  static constexpr int kOldAge = 64;  // in blocks: older than any that counts

  using Cells = std::array<uint64_t, kBins * kLevels>;  // bin * kLevels + level

  // Sends of each row, or column, in the messages of either side, which fade; and what follows for the next message of
  // a side: log2 of the sends to their mean, in eighths, plus 64.
  struct Lines {
    std::array<std::vector<uint32_t>, 2> counts;
    std::array<std::vector<uint8_t>, 2> levels;
  };

  absl::Status ReadState(absl::string_view state);
  static void UpdateLevels(Lines* lines);
  void Learn(absl::Span<const uint32_t> positions, int side);
  void AddToLines(absl::Span<const uint32_t> positions, int side);
  void AddToAges(absl::Span<const uint32_t> positions, int side);
  void CloseBlock();
  // These compute the fields that follow from the other ones.
  void UpdateTables();
  void UpdateBins();
  void UpdateMasses();

  // Looks up the entries of tables.masses for the cells of the elements from `begin` on.
  void Look(const HistoryTables& tables, int side, int64_t begin, absl::Span<uint8_t> out) const;
  HistoryTables CellNumbers() const;

  int64_t size_;
  int64_t columns_;
  bool has_lines_;
  Lines row_lines_;
  Lines column_lines_;
  int64_t until_fade_;  // positions until the counts are halved

  // A block is some messages in a row that have 1/128 of the elements together. Blocks are numbered modulo
  // kBlockNumbers.
  std::vector<uint8_t> last_;  // of each element: the block in which it was sent last, and above that bit the side
  int64_t now_ = 0;            // block that grows, not reduced
  int64_t in_block_ = 0;       // positions in it
  std::array<int64_t, kBlockNumbers> blocks_{};  // positions in the newest ones

  int64_t messages_ = 0;
  Cells sent_{};  // of the elements of each cell, how many were sent, and how many there were; both fade
  Cells seen_{};

  HistoryTables tables_{};
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_POSITION_HISTORY_H_
