#include "compression/position_history.h"

#include <algorithm>

namespace terse {
namespace {

constexpr uint32_t kSend = 16;       // what one send adds to the count of its row and its column
constexpr int64_t kFadeLines = 8;    // halved after so many positions for each row, or each column if there are more
constexpr int kEvenLevel = 64;       // of a row or column with the mean count
constexpr int kLowestLevel = 96;     // sum of two levels that is level 0 of an element
constexpr int kLevelShift = 2;       // eighths of an octave to half octaves
constexpr int kFadeCells = 5;        // a message fades the cells by 1/32
constexpr int kCellUnit = 256;       // what one element adds to its cell
constexpr int64_t kSampleRun = 64;   // elements
constexpr int64_t kSampled = 32768;  // elements of a large tensor that are looked at in a message, at least
constexpr int64_t kFirstBin = 64;    // bin 1 is for ages below 1/64 of the elements
constexpr int64_t kBlocksAll = 256;  // a block has 1/256 of them
constexpr int64_t kBlocksSwept = 64;
constexpr uint8_t kSweptAge = 192;

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
      block_of_(size_, static_cast<uint8_t>(-int{kSweptAge})) {
  if (has_lines_) {
    row_lines_.counts.resize(rows);
    column_lines_.counts.resize(columns);
  }
  UpdateTables();
}

void PositionHistory::Add(absl::Span<const uint32_t> positions) {
  if (positions.empty()) return;
  Learn(positions);
  if (has_lines_) AddToLines(positions);
  AddToAges(positions);
  UpdateTables();
}

template <typename Visit>
void PositionHistory::ForEachLevel(int64_t begin, int64_t end, Visit visit) const {
  if (!has_lines_) {
    constexpr int kEven = (2 * kEvenLevel - kLowestLevel) >> kLevelShift;
    for (int64_t i = begin; i < end; ++i) visit(i, kEven);
    return;
  }
  int64_t row = begin / columns_;
  for (int64_t i = begin; i < end; ++row) {
    const int64_t row_end = std::min(end, (row + 1) * columns_);
    const uint8_t* const levels = column_lines_.levels.data() - row * columns_;
    const int of_row = row_lines_.levels[row] - kLowestLevel;
    for (; i < row_end; ++i) visit(i, std::min(std::max(of_row + levels[i], 0) >> kLevelShift, kLevels - 1));
  }
}

void PositionHistory::Masses(int64_t begin, absl::Span<uint8_t> masses) const {
  uint8_t* const out = masses.data() - begin;
  ForEachLevel(begin, begin + static_cast<int64_t>(masses.size()),
               [&](int64_t element, int level) { out[element] = masses_[Bin(element)][level]; });
}

// Before the message changes what the elements' cells are.
void PositionHistory::Learn(absl::Span<const uint32_t> positions) {
  for (Cells* cells : {&sent_, &seen_}) {
    for (auto& bin : *cells) {
      for (uint64_t& cell : bin) cell -= cell >> kFadeCells;
    }
  }
  for (int64_t position : positions) {
    ForEachLevel(position, position + 1,
                 [&](int64_t element, int level) { sent_[Bin(element)][level] += kCellUnit; });
  }
  const int64_t every = std::max<int64_t>(1, size_ / kSampled);
  const uint64_t unit = static_cast<uint64_t>(kCellUnit * every);
  for (int64_t run = messages_ % every; run * kSampleRun < size_; run += every) {
    ForEachLevel(run * kSampleRun, std::min(size_, (run + 1) * kSampleRun),
                 [&](int64_t element, int level) { seen_[Bin(element)][level] += unit; });
  }
  ++messages_;
}

void PositionHistory::AddToLines(absl::Span<const uint32_t> positions) {
  for (uint32_t position : positions) {
    row_lines_.counts[position / columns_] += kSend;
    column_lines_.counts[position % columns_] += kSend;
  }
  until_fade_ -= static_cast<int64_t>(positions.size());
  const int64_t period = kFadeLines * std::max(size_ / columns_, columns_);
  for (; until_fade_ <= 0; until_fade_ += period) {
    for (Lines* lines : {&row_lines_, &column_lines_}) {
      for (uint32_t& count : lines->counts) count /= 2;
    }
  }
}

void PositionHistory::AddToAges(absl::Span<const uint32_t> positions) {
  const uint8_t now = static_cast<uint8_t>(now_);
  for (uint32_t position : positions) block_of_[position] = now;
  in_block_ += static_cast<int64_t>(positions.size());
  blocks_[now] = in_block_;
  if (in_block_ * kBlocksAll >= size_) CloseBlock();
}

// Numbers come round after 256 blocks; before that, elements that are old anyway get an age that stays old until the
// next sweep.
void PositionHistory::CloseBlock() {
  ++now_;
  in_block_ = 0;
  blocks_[static_cast<uint8_t>(now_)] = 0;
  if (now_ % kBlocksSwept != 0) return;
  const uint8_t now = static_cast<uint8_t>(now_);
  const uint8_t swept = static_cast<uint8_t>(now - kSweptAge);
  for (uint8_t& block : block_of_) block = static_cast<uint8_t>(now - block) >= kOldAge ? swept : block;
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
  lines->sum = 0;
  for (uint32_t count : lines->counts) lines->sum += count;
  const uint64_t mean = lines->sum / lines->counts.size();
  const uint64_t prior = mean / 16 + kSend;
  const int even = LogEighths(mean + prior) - kEvenLevel;
  lines->levels.resize(lines->counts.size());
  for (size_t i = 0; i < lines->counts.size(); ++i) {
    lines->levels[i] = static_cast<uint8_t>(std::min(std::max(LogEighths(lines->counts[i] + prior) - even, 0), 127));
  }
}

// Bin b > 0 is for elements since whose block fewer than 2^(b-1) / 64 of all positions were sent.
void PositionHistory::UpdateBins() {
  bins_.fill(0);
  int64_t since = 0;
  for (int age = 0; age < kOldAge; ++age) {
    int bin = 1;
    while (bin < kBins && since * kFirstBin >= size_ << (bin - 1)) ++bin;
    if (bin == kBins) return;
    bins_[age] = static_cast<uint8_t>(bin);
    since += blocks_[static_cast<uint8_t>(now_ - age)];
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
  for (int bin = 0; bin < kBins; ++bin) {
    for (int level = 0; level < kLevels; ++level) {
      if (sent == 0) {
        masses_[bin][level] = 1 << kMeanMassBits;
        continue;
      }
      // Two sends more, at the rate that row and column alone would mean: 2^((level - 8) / 2 + 1/4).
      const uint64_t prior_seen = 2 * kCellUnit * seen / sent;
      const uint64_t prior_sent = 2 * kCellUnit;
      static constexpr uint32_t kRates[kLevels] = {19,  27,  38,  54,  76,  108, 152,  215,
                                                   304, 431, 609, 861, 1218, 1722, 2436, 3444};  // in 1/256
      const __uint128_t rate =
          static_cast<__uint128_t>(256 * sent_[bin][level] + kRates[level] * prior_sent) * seen << kMeanMassBits;
      const __uint128_t even = static_cast<__uint128_t>(seen_[bin][level] + prior_seen) * sent * 256;
      const __uint128_t mass = (rate + even / 2) / even;
      masses_[bin][level] =
          static_cast<uint8_t>(std::min<__uint128_t>(std::max<__uint128_t>(mass, 1), 255));
    }
  }
}

}  // namespace terse
