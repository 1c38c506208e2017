#include "compression/position_history.h"

#include <algorithm>

namespace terse {
namespace {

constexpr uint32_t kSend = 16;       // what one send adds to the count of its row and its column
constexpr int64_t kFadeLines = 8;    // halved after so many positions for each row, or each column if there are more
constexpr int kEvenLevel = 64;       // of a row or column with the mean count
constexpr int kLowestLevel = 96;     // sum of two levels that is level 0 of an element
constexpr int kLevelShift = 2;       // eighths of an octave to half octaves
constexpr uint64_t kSameSide = 3;    // sends of the same side count so many times
constexpr int kFadeCells = 3;        // a message fades the cells by 1/8
constexpr uint64_t kCellUnit = 256;  // what one element adds to its cell
constexpr uint64_t kPriorSends = 2;  // of each cell, at the rate that row and column alone would mean
constexpr int64_t kSampleRun = 64;   // elements
constexpr int64_t kSampled = 32768;  // elements of a large tensor that are looked at in a message, at least
constexpr int64_t kFirstAge = 64;    // age 1 is for up to 1/64 of the elements
constexpr int64_t kBlocksAll = 128;  // a block has 1/128 of them
constexpr int64_t kBlocksSwept = 32;
constexpr int kSweptAge = 95;  // becomes 127 by the next sweep
constexpr uint8_t kBlockMask = 127;
constexpr int kSideShift = 7;

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
  if (has_lines_) {
    for (int side : {0, 1}) {
      row_lines_.counts[side].resize(rows);
      column_lines_.counts[side].resize(columns);
    }
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

template <typename Visit>
void PositionHistory::ForEachCell(int side, int64_t begin, int64_t end, Visit visit) const {
  const auto bin = [&](int64_t i) {
    const int age = ages_[static_cast<uint8_t>(now_ - last_[i]) & kBlockMask];
    return age > 0 && last_[i] >> kSideShift == side ? age + kAges : age;
  };
  if (!has_lines_) {
    constexpr int kEven = (2 * kEvenLevel - kLowestLevel) >> kLevelShift;
    for (int64_t i = begin; i < end; ++i) visit(i, bin(i), kEven);
    return;
  }
  int64_t row = begin / columns_;
  for (int64_t i = begin; i < end; ++row) {
    const int64_t row_end = std::min(end, (row + 1) * columns_);
    const uint8_t* const levels = column_lines_.levels[side].data() - row * columns_;
    const int of_row = row_lines_.levels[side][row] - kLowestLevel;
    for (; i < row_end; ++i) visit(i, bin(i), std::min(std::max(of_row + levels[i], 0) >> kLevelShift, kLevels - 1));
  }
}

void PositionHistory::Masses(int side, int64_t begin, absl::Span<uint8_t> masses) const {
  uint8_t* const out = masses.data() - begin;
  ForEachCell(side, begin, begin + static_cast<int64_t>(masses.size()),
              [&](int64_t element, int bin, int level) { out[element] = masses_[bin][level]; });
}

// Before the message changes what the elements' cells are.
void PositionHistory::Learn(absl::Span<const uint32_t> positions, int side) {
  for (Cells* cells : {&sent_, &seen_}) {
    for (auto& bin : *cells) {
      for (uint64_t& cell : bin) cell -= cell >> kFadeCells;
    }
  }
  for (int64_t position : positions) {
    ForEachCell(side, position, position + 1, [&](int64_t, int bin, int level) { sent_[bin][level] += kCellUnit; });
  }
  const int64_t every = std::max<int64_t>(1, size_ / kSampled);
  const uint64_t unit = kCellUnit * static_cast<uint64_t>(every);
  for (int64_t run = messages_ % every; run * kSampleRun < size_; run += every) {
    ForEachCell(side, run * kSampleRun, std::min(size_, (run + 1) * kSampleRun),
                [&](int64_t, int bin, int level) { seen_[bin][level] += unit; });
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

// Age a is for elements since whose block at least 2^(a-2) / 64 and fewer than 2^(a-1) / 64 of all positions were sent.
void PositionHistory::UpdateBins() {
  ages_.fill(0);
  int64_t since = 0;
  for (int blocks = 0; blocks < kOldAge; ++blocks) {
    int age = 1;
    while (age <= kAges && since * kFirstAge >= size_ << (age - 1)) ++age;
    if (age > kAges) return;
    ages_[blocks] = static_cast<uint8_t>(age);
    since += blocks_[(now_ - blocks) & kBlockMask];
  }
}

void PositionHistory::UpdateMasses() {
  uint64_t sent = 0, seen = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    for (int level = 0; level < kLevels; ++level) {
      sent += sent_[bin][level];
      seen += seen_[bin][level];
    }
  }
  if (sent == 0) {
    for (auto& masses : masses_) masses.fill(1 << kMeanMassBits);
    return;
  }
  const uint64_t prior_sent = kPriorSends * kCellUnit;
  const uint64_t prior_seen = prior_sent * seen / sent;
  for (int bin = 0; bin < kBins; ++bin) {
    for (int level = 0; level < kLevels; ++level) {
      const uint64_t cell_sent = (sent_[bin][level] << kRateBits) + kRates[level] * prior_sent;
      const __uint128_t over = static_cast<__uint128_t>(cell_sent) * seen << kMeanMassBits;
      const __uint128_t even = static_cast<__uint128_t>(seen_[bin][level] + prior_seen) * sent << kRateBits;
      const __uint128_t mass = (over + even / 2) / even;
      masses_[bin][level] = static_cast<uint8_t>(std::min<__uint128_t>(std::max<__uint128_t>(mass, 1), 255));
    }
  }
}

}  // namespace terse
