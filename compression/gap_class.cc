#include "compression/gap_class.h"

#include <algorithm>
#include <array>
#include <vector>

#include "compression/gap_code.h"

namespace terse {
namespace {

constexpr char kName[] = "gap_class";
constexpr int kClasses = 62;
constexpr int kLastClassBits = 6;
constexpr int kLevelBits = 4;
constexpr int kMaxLevel = 15;
constexpr int kScaleBits = 12;
constexpr uint32_t kScale = 1 << kScaleBits;
// The state is at least kLowest, and takes or gives kWordBits at a time.
constexpr int kWordBits = 16;
constexpr uint32_t kLowest = 1 << kWordBits;
constexpr int kStateBits = 32;

struct GapClass {
  explicit GapClass(uint32_t zeros) {
    if (zeros < 4) {
      number = static_cast<int>(zeros);
      extra = 0;
    } else {
      extra = 30 - __builtin_clz(zeros);
      number = 2 * extra + static_cast<int>(zeros >> extra);
    }
  }

  int number;
  int extra;  // the low bits of `zeros` that the class leaves open
};

using Counts = std::array<uint32_t, kClasses>;
using Levels = std::array<uint8_t, kClasses>;

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

struct Plan {
  Levels levels;
  int64_t extra_bits = 0;
};

Plan MakePlan(absl::Span<const uint32_t> positions) {
  Counts counts{};
  Plan plan;
  ForEachGap(positions, [&](uint32_t zeros) {
    const GapClass gap(zeros);
    ++counts[gap.number];
    plan.extra_bits += gap.extra;
  });
  plan.levels = ChooseLevels(counts);
  return plan;
}

int64_t HeaderBits(const Levels& levels) { return kLastClassBits + kLevelBits * (LastClass(levels) + 1) + kStateBits; }

// Takes the classes in, the last one first; calls give(index, word) for the words that the reader takes back after the
// class at that index. Returns the state that the reader starts with.
template <typename Give>
uint32_t EncodeClasses(absl::Span<const uint32_t> positions, const Table& table, Give give) {
  uint32_t state = kLowest;
  for (size_t i = positions.size(); i-- > 0;) {
    const uint32_t zeros = i == 0 ? positions[0] : positions[i] - positions[i - 1] - 1;
    const Interval interval = table[GapClass(zeros).number];
    if (state >= uint64_t{interval.frequency} << (kStateBits - kScaleBits)) {
      give(i, state & (kLowest - 1));
      state >>= kWordBits;
    }
    state = (state / interval.frequency << kScaleBits) + state % interval.frequency + interval.begin;
  }
  return state;
}

// The entry that the reader looks up under the low bits of its state.
struct Slot {
  uint16_t frequency;
  uint16_t offset;  // in the class's interval
  uint8_t number;
  uint8_t extra;
  uint8_t mantissa;  // `zeros` above the extra bits
};
using Slots = std::array<Slot, kScale>;

std::shared_ptr<const Slots> MakeSlots(const Levels& levels) {
  const Table table = MakeTable(levels);
  auto slots = std::make_shared<Slots>();
  Slot* slot = slots->data();
  for (int c = 0; c < kClasses; ++c) {
    const int extra = c < 4 ? 0 : c / 2 - 1;
    for (uint32_t offset = 0; offset < table[c].frequency; ++offset) {
      *slot++ = {static_cast<uint16_t>(table[c].frequency), static_cast<uint16_t>(offset), static_cast<uint8_t>(c),
                 static_cast<uint8_t>(extra), static_cast<uint8_t>(c - 2 * extra)};
    }
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
      ++counts_[slot.number];
      state = slot.frequency * (state >> kScaleBits) + slot.offset;
      uint64_t window = stream.Window();  // a word and the extra bits take at most 45 of its 57 bits
      const int taken = state < kLowest ? kWordBits : 0;
      state = taken != 0 ? state << kWordBits | (window & (kLowest - 1)) : state;
      window >>= taken;
      if (!stream.Skip(taken + slot.extra)) return PositionsEndEarly(kName);
      gap = (uint32_t{slot.mantissa} << slot.extra) + static_cast<uint32_t>(window & ((1u << slot.extra) - 1));
    }
    state_ = state;
    stream_ = stream;
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() {
    if (state_ != kLowest) return RefusePositions(kName, "the coder's last state is not its first");
    if (ChooseLevels(counts_) != levels_) return RefusePositions(kName, "the table is not that of the gaps");
    return stream_;
  }

 private:
  Levels levels_;
  std::shared_ptr<const Slots> slots_;
  Counts counts_{};
  uint32_t state_;
  BitReader stream_;
};

class Coder final : public PositionCoder {
 public:
  absl::string_view name() const override { return kName; }

  int64_t Bits(absl::Span<const uint32_t> positions, int64_t) const override {
    const Plan plan = MakePlan(positions);
    int64_t words = 0;
    EncodeClasses(positions, MakeTable(plan.levels), [&](size_t, uint32_t) { ++words; });
    return HeaderBits(plan.levels) + words * kWordBits + plan.extra_bits;
  }

  // A class of frequency 1 takes log2(kScale) bits and less than a tenth for the state's rounding.
  int64_t MaxBits(int64_t count, int64_t size) const override {
    const auto cost = [](int log2_gap) { return kScaleBits + 1 + std::max(0, log2_gap - 1); };
    return kLastClassBits + kLevelBits * kClasses + kStateBits + MaxGapBits(count, size, cost);
  }

  void Put(absl::Span<const uint32_t> positions, int64_t, BitWriter* writer) const override {
    const Levels levels = MakePlan(positions).levels;
    constexpr uint32_t kNoWord = kLowest;
    std::vector<uint32_t> words(positions.size(), kNoWord);
    const uint32_t state =
        EncodeClasses(positions, MakeTable(levels), [&](size_t index, uint32_t word) { words[index] = word; });
    const int last = LastClass(levels);
    writer->Put(last, kLastClassBits);
    for (int c = 0; c <= last; ++c) writer->Put(levels[c], kLevelBits);
    writer->Put(state, kStateBits);
    const uint32_t* word = words.data();
    ForEachGap(positions, [&](uint32_t zeros) {
      if (*word != kNoWord) writer->Put(*word, kWordBits);
      ++word;
      const int extra = GapClass(zeros).extra;
      writer->Put(zeros & ((uint32_t{1} << extra) - 1), extra);
    });
  }

  absl::StatusOr<std::unique_ptr<PositionReader>> Open(int64_t, int64_t size, const BitReader& stream) const override {
    BitReader rest = stream;
    Levels levels{};
    uint32_t last, state;
    if (!rest.Get(kLastClassBits, &last)) return PositionsEndEarly(kName);
    if (last >= kClasses) return RefusePositions(kName, "there is no such last class");
    for (uint32_t c = 0; c <= last; ++c) {
      uint32_t level;
      if (!rest.Get(kLevelBits, &level)) return PositionsEndEarly(kName);
      levels[c] = static_cast<uint8_t>(level);
    }
    if (levels[last] == 0) return RefusePositions(kName, "the last class is unused");
    if (std::find(levels.begin(), levels.end(), kMaxLevel) == levels.end()) {
      return RefusePositions(kName, "no class is the most frequent one");
    }
    if (!rest.Get(kStateBits, &state)) return PositionsEndEarly(kName);
    if (state < kLowest) return RefusePositions(kName, "the first state is below the lowest");
    return std::make_unique<GapReader<GapClassSource>>(GapClassSource(levels, state, rest), size, kName);
  }
};

}  // namespace

const PositionCoder& GapClassCoder() {
  static const Coder coder;
  return coder;
}

}  // namespace terse
