#include "compression/gap_class.h"

#include <algorithm>
#include <array>
#include <vector>

#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr char kGapClassName[] = "gap_class";
constexpr int kClasses = kGapClasses;
constexpr int kLastClassBits = 6;
constexpr int kLevelBits = 4;
constexpr int kMaxLevel = 15;
constexpr int kScaleBits = 12;
constexpr uint32_t kScale = 1 << kScaleBits;
// The state is at least kLowest, and takes or gives kWordBits at a time.
constexpr int kWordBits = 16;
constexpr uint32_t kLowest = 1 << kWordBits;
constexpr int kStateBits = 32;

// The low bits of a gap that its class leaves open.
int ExtraBits(int number) { return std::max(number, 2) / 2 - 1; }

struct GapClass {
  explicit GapClass(uint32_t zeros)
      : extra(30 - __builtin_clz(zeros | 2)), number(2 * extra + static_cast<int>(zeros >> extra)) {}

  int extra;
  int number;
};

using Counts = GapClassCounts;
using Levels = GapClassLevels;

// Returns 2, 3, 4, 6, 8, 12, ..., 256 for levels 1 to 15, and 0 for level 0.
uint32_t Weight(int level) {
  if (level == 0) return 0;
  return (2 + ((level - 1) & 1)) << ((level - 1) / 2);
}

// The level whose weight is nearest to 256 * count / most, the upper one of two.
Levels ChooseLevels(const Counts& counts) {
  const uint64_t most = *std::max_element(counts.begin(), counts.end());
  Levels levels{};
  for (int c = 0; c < kClasses; ++c) {
    if (counts[c] == 0) continue;
    int level = kMaxLevel;
    while (level > 1 && uint64_t{512} * counts[c] < (Weight(level - 1) + Weight(level)) * most) --level;
    levels[c] = static_cast<uint8_t>(level);
  }
  return levels;
}

struct Interval {
  uint32_t frequency = 0;  // in 1 / kScale
  uint32_t begin = 0;
};
using Table = std::array<Interval, kClasses>;

// At least one level is kMaxLevel: its class takes what rounding leaves or lacks. The sum of the weights is at most
// 256 * kClasses, so that class has a frequency above kClasses and stays above 0.
Table MakeTable(const Levels& levels) {
  uint32_t sum = 0;
  for (int level : levels) sum += Weight(level);
  Table table;
  uint32_t used = 0;
  for (int c = 0; c < kClasses; ++c) {
    if (levels[c] == 0) continue;
    table[c].frequency = std::max<uint32_t>(1, Weight(levels[c]) * kScale / sum);
    used += table[c].frequency;
  }
  table[std::find(levels.begin(), levels.end(), kMaxLevel) - levels.begin()].frequency += kScale - used;
  uint32_t begin = 0;
  for (Interval& interval : table) {
    interval.begin = begin;
    begin += interval.frequency;
  }
  return table;
}

int LastClass(const Levels& levels) {
  int last = kClasses - 1;
  while (levels[last] == 0) --last;
  return last;
}

int64_t HeaderBits(const Levels& levels) { return kLastClassBits + kLevelBits * (LastClass(levels) + 1) + kStateBits; }

// How the encoder takes in one class.
struct Step {
  uint64_t limit;       // a state of at least this gives a word first, and is below it then
  uint64_t reciprocal;  // 2^kReciprocalBits / frequency, rounded up
  uint32_t complement;  // kScale - frequency
  uint32_t begin;
};

// The product of a state below frequency << (kStateBits - kScaleBits) and the reciprocal fits in 64 bits, and rounding
// up makes it too large by less than 1 / frequency: its upper bits are the quotient.
constexpr int kReciprocalBits = 64 - (kStateBits - kScaleBits);

std::array<Step, kClasses> MakeSteps(const Table& table) {
  std::array<Step, kClasses> steps{};
  for (int c = 0; c < kClasses; ++c) {
    const uint32_t frequency = table[c].frequency;
    if (frequency == 0) continue;
    steps[c] = {uint64_t{frequency} << (kStateBits - kScaleBits),
                ((uint64_t{1} << kReciprocalBits) + frequency - 1) / frequency, kScale - frequency, table[c].begin};
  }
  return steps;
}

// Marks a word that is there, above its bits.
constexpr uint32_t kWordFlag = 1u << kWordBits;

// Takes the classes in, the last one first, and fills `words` with the words that the reader takes back after each: 0
// for none, else kWordFlag and the word. Adds their number to *number. Returns the state that the reader starts with.
uint32_t EncodeClasses(absl::Span<const uint32_t> positions, const Table& table, uint32_t* words, int64_t* number) {
  const std::array<Step, kClasses> steps = MakeSteps(table);
  uint64_t state = kLowest;
  for (size_t i = positions.size(); i-- > 0;) {
    const uint32_t zeros = i == 0 ? positions[0] : positions[i] - positions[i - 1] - 1;
    const Step& step = steps[GapClass(zeros).number];
    // Not a branch, which would often be guessed wrong.
    const uint32_t gives = static_cast<uint32_t>(state >= step.limit);
    words[i] = (0 - gives) & (kWordFlag | static_cast<uint32_t>(state & (kWordFlag - 1)));
    *number += gives;
    state >>= gives * kWordBits;
    const uint64_t quotient = state * step.reciprocal >> kReciprocalBits;
    state += quotient * step.complement + step.begin;
  }
  return static_cast<uint32_t>(state);
}

// The reader looks up a slot under the low bits of its state. It is one word, so that the table leaves room in the
// first-level cache, and holds the class's frequency, the offset in the class's interval, and the class.
class Slot {
 public:
  Slot() = default;
  Slot(uint32_t frequency, uint32_t offset, int number)
      : word_(frequency << (kScaleBits + kNumberBits) | offset << kNumberBits | static_cast<uint32_t>(number)) {}

  uint32_t frequency() const { return word_ >> (kScaleBits + kNumberBits); }
  uint32_t offset() const { return word_ >> kNumberBits & (kScale - 1); }
  int number() const { return static_cast<int>(word_ & ((1u << kNumberBits) - 1)); }

 private:
  static constexpr int kNumberBits = 6;
  static_assert(kClasses <= 1 << kNumberBits && kNumberBits + 2 * kScaleBits + 1 <= 32, "a slot is one word");

  uint32_t word_ = 0;
};
using Slots = std::array<Slot, kScale>;

std::shared_ptr<const Slots> MakeSlots(const Levels& levels) {
  const Table table = MakeTable(levels);
  auto slots = std::make_shared<Slots>();
  Slot* slot = slots->data();
  for (int c = 0; c < kClasses; ++c) {
    for (uint32_t offset = 0; offset < table[c].frequency; ++offset) *slot++ = Slot(table[c].frequency, offset, c);
  }
  return slots;
}

class GapClassSource {
 public:
  GapClassSource(const Levels& levels, uint32_t state, const BitReader& stream)
      : levels_(levels), slots_(MakeSlots(levels)), state_(state), stream_(stream) {}

  absl::Status Zeros(absl::Span<uint32_t> zeros) {
    const Slot* const slots = slots_->data();
    uint32_t state = state_;
    BitReader stream = stream_;
    for (uint32_t& gap : zeros) {
      const Slot slot = slots[state % kScale];
      const int number = slot.number();
      const int extra = ExtraBits(number);
      ++counts_[number];
      state = slot.frequency() * (state >> kScaleBits) + slot.offset();
      uint64_t window = stream.Window();  // a word and the extra bits take at most 45 of its 57 bits
      const int taken = state < kLowest ? kWordBits : 0;
      state = taken != 0 ? state << kWordBits | (window & (kLowest - 1)) : state;
      window >>= taken;
      if (!stream.Skip(taken + extra)) return PositionsEndEarly(kGapClassName);
      const uint32_t open = static_cast<uint32_t>(window) & ((uint32_t{1} << extra) - 1);
      gap = (static_cast<uint32_t>(number - 2 * extra) << extra) + open;
    }
    state_ = state;
    stream_ = stream;
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() {
    if (state_ != kLowest) return RefusePositions(kGapClassName, "the coder's last state is not its first");
    if (ChooseLevels(counts_) != levels_) return RefusePositions(kGapClassName, "the table is not that of the gaps");
    return stream_;
  }

 private:
  Levels levels_;
  std::shared_ptr<const Slots> slots_;
  Counts counts_{};
  uint32_t state_;
  BitReader stream_;
};

class GapClassPositions final : public PositionCoder {
 public:
  absl::string_view name() const override { return kGapClassName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t) const override {
    return GapClassCoding(positions).bits();
  }

  // A class of frequency 1 takes log2(kScale) bits and less than a tenth for the state's rounding.
  int64_t MaxBits(int64_t count, int64_t size) const override {
    const auto cost = [](int log2_gap) { return kScaleBits + 1 + std::max(0, log2_gap - 1); };
    return kLastClassBits + kLevelBits * kClasses + kStateBits + MaxGapBits(count, size, cost);
  }

  void Put(absl::Span<const uint32_t> positions, int64_t, BitWriter* writer) const override {
    GapClassCoding(positions).Put(writer);
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t, int64_t size, const BitReader& stream) const override {
    BitReader rest = stream;
    Levels levels{};
    uint32_t last, state;
    if (!rest.Get(kLastClassBits, &last)) return PositionsEndEarly(kGapClassName);
    if (last >= kClasses) return RefusePositions(kGapClassName, "there is no such last class");
    for (uint32_t c = 0; c <= last; ++c) {
      uint32_t level;
      if (!rest.Get(kLevelBits, &level)) return PositionsEndEarly(kGapClassName);
      levels[c] = static_cast<uint8_t>(level);
    }
    if (levels[last] == 0) return RefusePositions(kGapClassName, "the last class is unused");
    if (std::find(levels.begin(), levels.end(), kMaxLevel) == levels.end()) {
      return RefusePositions(kGapClassName, "no class is the most frequent one");
    }
    if (!rest.Get(kStateBits, &state)) return PositionsEndEarly(kGapClassName);
    if (state < kLowest) return RefusePositions(kGapClassName, "the first state is below the lowest");
    return std::make_unique<GapReader<GapClassSource>>(GapClassSource(levels, state, rest), size, kGapClassName);
  }
};

}  // namespace

GapClassCoding::GapClassCoding(absl::Span<const uint32_t> positions)
    : positions_(positions),
      counts_(CountGaps<kClasses>(positions, [](uint32_t zeros) { return GapClass(zeros).number; })),
      levels_(ChooseLevels(counts_)),
      words_(positions.size()) {
  int64_t words = 0;
  state_ = EncodeClasses(positions, MakeTable(levels_), words_.data(), &words);
  bits_ = HeaderBits(levels_) + words * kWordBits;
  for (int c = 0; c < kClasses; ++c) bits_ += int64_t{counts_[c]} * ExtraBits(c);
}

void GapClassCoding::Put(BitWriter* writer) const {
  writer->Reserve(bits_);
  const int last = LastClass(levels_);
  writer->Put(last, kLastClassBits);
  for (int c = 0; c <= last; ++c) writer->Put(levels_[c], kLevelBits);
  writer->Put(state_, kStateBits);
  const uint32_t* word = words_.data();
  ForEachGap(positions_, [&](uint32_t zeros) {
    const int extra = GapClass(zeros).extra;
    const int taken = static_cast<int>(*word >> kWordBits) * kWordBits;
    const uint64_t both = (*word & (kWordFlag - 1)) | uint64_t{zeros & ((uint32_t{1} << extra) - 1)} << taken;
    ++word;
    writer->Put(both & 0xffffffffu, std::min(taken + extra, 32));
    if (taken + extra > 32) writer->Put(both >> 32, taken + extra - 32);
  });
}

const PositionCoder& GapClassCoder() {
  static const GapClassPositions coder;
  return coder;
}

}  // namespace terse
