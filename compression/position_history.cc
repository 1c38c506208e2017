#include "compression/position_history.h"

#include <algorithm>
#include <numeric>

namespace terse {
namespace {

constexpr uint32_t kSend = 16;       // what one send adds to the count of its row and its column
constexpr int64_t kFadeLines = 8;    // halved after so many positions for each row, or each column if there are more
constexpr int kEvenLevel = 64;       // of a row or column with the mean count
constexpr uint64_t kSameSide = 3;    // sends of the same side count so many times
constexpr int kFadeCells = 3;        // a message fades the cells by 1/8
constexpr uint64_t kCellUnit = 256;  // what one element adds to its cell
constexpr uint64_t kPriorSends = 2;  // of each cell, at the rate that row and column alone would mean
constexpr int64_t kSampleRun = 64;   // elements
constexpr int64_t kSampled = 32768;  // elements of a large tensor that are looked at in a message, at least
constexpr int64_t kFirstAge = 8;     // age 1 is for up to 1/8 of the elements
constexpr int64_t kBlocksAll = 128;  // a block has 1/128 of them
constexpr int64_t kBlocksSwept = 32;
constexpr int kSweptAge = 95;  // becomes 127 by the next sweep
constexpr uint8_t kBlockMask = 127;
constexpr int kSideShift = 7;
constexpr int64_t kLookRun = 4096;  // elements of a tensor without columns that are looked at in one go

constexpr std::array<uint8_t, kLookRun> EvenLevels() {
  std::array<uint8_t, kLookRun> levels{};
  for (uint8_t& level : levels) level = kEvenLevel;
  return levels;
}

// The levels of the "columns" of a tensor that has none.
constexpr std::array<uint8_t, kLookRun> kEvenLevels = EvenLevels();

// 2^((level - 8) / 2 + 1/4), the middle of a level, in 1/256.
constexpr uint32_t kRates[] = {19, 27, 38, 54, 76, 108, 152, 215, 304, 431, 609, 861, 1218, 1722, 2436, 3444};
constexpr int kRateBits = 8;

// log2 in eighths, the fraction cut to three bits and taken as linear; 0 for 0.
int LogEighths(uint64_t value) {
  if (value == 0) return 0;
  const int whole = 63 - __builtin_clzll(value);
  const uint64_t fraction = whole >= 3 ? value >> (whole - 3) : value << (3 - whole);
  return 8 * whole + static_cast<int>(fraction & 7);
}

}  // namespace

PositionHistory::PositionHistory(int64_t rows, int64_t columns)
    : size_(rows * columns),
      columns_(columns),
      has_lines_(std::min(rows, columns) >= kFewestLines),
      until_fade_(kFadeLines * std::max(rows, columns)),
      last_(size_, kBlockNumbers - kSweptAge) {
  for (int side : {0, 1}) {
    if (!has_lines_) break;
    row_lines_.counts[side].resize(rows);
    column_lines_.counts[side].resize(columns);
  }
  UpdateTables();
}

void PositionHistory::Add(absl::Span<const uint32_t> positions, int side) {
  if (positions.empty()) return;
  Learn(positions, side);
  if (has_lines_) AddToLines(positions, side);
  AddToAges(positions, side);
  UpdateTables();
}

void PositionHistory::Masses(int side, int64_t begin, absl::Span<uint8_t> masses) const {
  Look(tables_, side, begin, masses);
}

void PositionHistory::Look(const HistoryTables& tables, int side, int64_t begin, absl::Span<uint8_t> out) const {
  HistoryRow row = {nullptr, nullptr, kEvenLevel, static_cast<uint8_t>(now_ & kBlockMask), static_cast<uint8_t>(side)};
  const int64_t end = begin + static_cast<int64_t>(out.size());
  for (int64_t i = begin; i < end;) {
    int64_t run_end = std::min(end, i + kLookRun);
    row.last = last_.data() + i;
    row.columns = kEvenLevels.data();
    if (has_lines_) {
      run_end = std::min(end, (i / columns_ + 1) * columns_);
      row.columns = column_lines_.levels[side].data() + i % columns_;
      row.row = row_lines_.levels[side][i / columns_];
    }
    GetHistoryKernels().masses(tables, row, run_end - i, out.data() + (i - begin));
    i = run_end;
  }
}

// Tables in which a cell's number stands in place of its mass.
HistoryTables PositionHistory::CellNumbers() const {
  HistoryTables numbers = tables_;
  for (int cell = 0; cell < kBins * kLevels; ++cell) {
    numbers.masses[cell / kLevels][cell % kLevels] = static_cast<uint8_t>(cell);
  }
  return numbers;
}

// Counts the message in the cells of its elements; called before the message changes which cells these are.
void PositionHistory::Learn(absl::Span<const uint32_t> positions, int side) {
  for (Cells* cells : {&sent_, &seen_}) {
    for (uint64_t& fading : *cells) fading -= fading >> kFadeCells;
  }
  const HistoryTables numbers = CellNumbers();
  uint8_t cell = 0;
  for (uint32_t position : positions) {
    Look(numbers, side, position, absl::MakeSpan(&cell, 1));
    sent_[cell] += kCellUnit;
  }
  const int64_t every = std::max<int64_t>(1, size_ / kSampled);
  const uint64_t unit = kCellUnit * static_cast<uint64_t>(every);
  for (int64_t run = messages_ % every; run * kSampleRun < size_; run += every) {
    const int64_t begin = run * kSampleRun;
    std::array<uint8_t, kSampleRun> cells;
    const int64_t count = std::min(kSampleRun, size_ - begin);
    Look(numbers, side, begin, absl::MakeSpan(cells.data(), count));
    for (int64_t i = 0; i < count; ++i) seen_[cells[i]] += unit;
  }
  ++messages_;
}

void PositionHistory::AddToLines(absl::Span<const uint32_t> positions, int side) {
  for (uint32_t position : positions) {
    row_lines_.counts[side][position / columns_] += kSend;
    column_lines_.counts[side][position % columns_] += kSend;
  }
  until_fade_ -= static_cast<int64_t>(positions.size());
  const int64_t period = kFadeLines * std::max(size_ / columns_, columns_);
  for (; until_fade_ <= 0; until_fade_ += period) {
    for (Lines* lines : {&row_lines_, &column_lines_}) {
      for (auto& counts : lines->counts) {
        for (uint32_t& count : counts) count /= 2;
      }
    }
  }
}

void PositionHistory::AddToAges(absl::Span<const uint32_t> positions, int side) {
  const uint8_t now = static_cast<uint8_t>((now_ & kBlockMask) | side << kSideShift);
  for (uint32_t position : positions) last_[position] = now;
  in_block_ += static_cast<int64_t>(positions.size());
  blocks_[now_ & kBlockMask] = in_block_;
  if (in_block_ * kBlocksAll >= size_) CloseBlock();
}

// Numbers come round after kBlockNumbers; before that, elements that are old anyway get an age that stays old until the
// next sweep.
void PositionHistory::CloseBlock() {
  ++now_;
  in_block_ = 0;
  blocks_[now_ & kBlockMask] = 0;
  if (now_ % kBlocksSwept != 0) return;
  const uint8_t now = static_cast<uint8_t>(now_);
  const uint8_t swept = (now - kSweptAge) & kBlockMask;
  for (uint8_t& last : last_) last = ((now - last) & kBlockMask) >= kOldAge ? swept : last;
}

void PositionHistory::UpdateTables() {
  if (has_lines_) {
    UpdateLevels(&row_lines_);
    UpdateLevels(&column_lines_);
  }
  UpdateBins();
  UpdateMasses();
}

void PositionHistory::UpdateLevels(Lines* lines) {
  const size_t size = lines->counts[0].size();
  std::vector<uint64_t> counts(size);
  for (int side : {0, 1}) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; ++i) {
      counts[i] = kSameSide * lines->counts[side][i] + lines->counts[1 - side][i];
      sum += counts[i];
    }
    const uint64_t mean = sum / size;
    const uint64_t prior = mean / 16 + kSend;
    const int even = LogEighths(mean + prior) - kEvenLevel;
    std::vector<uint8_t>& levels = lines->levels[side];
    levels.resize(size);
    for (size_t i = 0; i < size; ++i) {
      levels[i] = static_cast<uint8_t>(std::min(std::max(LogEighths(counts[i] + prior) - even, 0), 127));
    }
  }
}

// Class a is for elements since whose block fewer than 2^(a-1) / 8 of all positions were sent, and no smaller class.
void PositionHistory::UpdateBins() {
  int64_t since = 0;
  int blocks = 0;
  for (int a = 1; a <= kAges; ++a) {
    while (blocks < kOldAge && since * kFirstAge < size_ << (a - 1)) {
      since += blocks_[(now_ - blocks) & kBlockMask];
      ++blocks;
    }
    tables_.age_limits[a - 1] = static_cast<uint8_t>(blocks);
  }
}

void PositionHistory::UpdateMasses() {
  const uint64_t sent = std::accumulate(sent_.begin(), sent_.end(), uint64_t{0});
  const uint64_t seen = std::accumulate(seen_.begin(), seen_.end(), uint64_t{0});
  const uint64_t prior_sent = kPriorSends * kCellUnit;
  const uint64_t prior_seen = sent == 0 ? 0 : prior_sent * seen / sent;
  for (int cell = 0; cell < kBins * kLevels; ++cell) {
    const int level = cell % kLevels;
    uint8_t* const mass = &tables_.masses[cell / kLevels][level];
    *mass = 1 << kMeanMassBits;
    if (sent == 0) continue;
    const uint64_t cell_sent = (sent_[cell] << kRateBits) + kRates[level] * prior_sent;
    const __uint128_t over = static_cast<__uint128_t>(cell_sent) * seen << kMeanMassBits;
    const __uint128_t even = static_cast<__uint128_t>(seen_[cell] + prior_seen) * sent << kRateBits;
    *mass = static_cast<uint8_t>(std::min<__uint128_t>(std::max<__uint128_t>((over + even / 2) / even, 1), 255));
  }
}

}  // namespace terse
