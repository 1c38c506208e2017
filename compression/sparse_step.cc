#include "compression/sparse_step.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/prefix_code.h"
#include "compression/rice.h"
#include "core/status.h"

namespace terse {
namespace {

// The low bits of a value that travel as they are: the fraction, behind a code for sign and exponent; or none, where
// whole values are the symbols of the code.
constexpr int kFractionBits = 23;
constexpr uint32_t kOctaves = uint32_t{1} << (32 - kFractionBits);

constexpr int kSplitBits = 1;
constexpr int kSymbolsBits = 15;
constexpr int kCodeLengthBits = 4;
constexpr int kCountBits = 17;

int64_t BlockSize(int64_t begin, int64_t size) { return std::min(kSparseStepBlock, size - begin); }

// Elements that are looked at together, so that the zeros of sparse steps pass at the speed of memory.
constexpr size_t kGroup = 16;

// Calls visit(begin, end) for every group of neighbours that are not all +0, in order.
template <typename Visit>
void ForGroups(absl::Span<const float> elements, const Visit& visit) {
  size_t begin = 0;
  for (; begin + kGroup <= elements.size(); begin += kGroup) {
    uint32_t any = 0;
    for (size_t i = 0; i < kGroup; ++i) any |= FloatBits(elements[begin + i]);
    if (any != 0) visit(begin, begin + kGroup);
  }
  if (begin < elements.size()) visit(begin, elements.size());
}

// The symbols of the code, increasing, and how often each occurs.
struct Symbols {
  int low_bits = kFractionBits;
  std::vector<uint32_t> values;
  std::vector<uint64_t> counts;
  std::vector<uint8_t> lengths;

  // Chooses the code.
  void MakeCode() {
    if (!values.empty()) lengths = PrefixLengths(counts);
  }

  // The bits that the code and all values take in the stream.
  int64_t Bits() const {
    int64_t bits = static_cast<int64_t>(values.size()) * (32 - low_bits + (values.size() > 1 ? kCodeLengthBits : 0));
    for (size_t i = 0; i < values.size(); ++i) bits += static_cast<int64_t>(counts[i]) * (lengths[i] + low_bits);
    return bits;
  }
};

Symbols OctavesOf(absl::Span<const float> step) {
  // Neighbours often have the same octave: with one counter each would wait for the other.
  constexpr size_t kLanes = 4;
  std::vector<uint64_t> lanes(kLanes * kOctaves);
  uint64_t zeros = 0;
  ForGroups(step, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint32_t bits = FloatBits(step[i]);
      ++lanes[(i % kLanes) * kOctaves + (bits >> kFractionBits)];
      zeros += static_cast<uint64_t>(bits == 0);
    }
  });
  Symbols symbols;
  for (uint32_t octave = 0; octave < kOctaves; ++octave) {
    uint64_t count = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) count += lanes[lane * kOctaves + octave];
    if (octave == 0) count -= zeros;
    if (count == 0) continue;
    symbols.values.push_back(octave);
    symbols.counts.push_back(count);
  }
  symbols.MakeCode();
  return symbols;
}

// Counts distinct values other than +0, at most kMostPrefixSymbols of them.
class ValueCounter {
 public:
  ValueCounter() : keys_(kSlots), counts_(kSlots) {}

  // Where the value is, or would be.
  size_t SlotOf(uint32_t bits) const {
    size_t slot = (bits * uint64_t{0x9e3779b97f4a7c15}) >> (64 - kSlotBits);
    while (keys_[slot] != bits && keys_[slot] != 0) slot = (slot + 1) % kSlots;
    return slot;
  }

  // False when there are too many.
  bool Add(uint32_t bits) {
    const size_t slot = SlotOf(bits);
    if (keys_[slot] == 0 && ++distinct_ > kMostPrefixSymbols) return false;
    keys_[slot] = bits;
    ++counts_[slot];
    return true;
  }

  Symbols TakeSymbols() const {
    std::vector<std::pair<uint32_t, uint64_t>> found;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (keys_[slot] != 0) found.emplace_back(keys_[slot], counts_[slot]);
    }
    std::sort(found.begin(), found.end());
    Symbols symbols;
    symbols.low_bits = 0;
    for (const auto& [bits, count] : found) {
      symbols.values.push_back(bits);
      symbols.counts.push_back(count);
    }
    symbols.MakeCode();
    return symbols;
  }

 private:
  static constexpr int kSlotBits = 15;
  static constexpr size_t kSlots = size_t{1} << kSlotBits;
  static_assert(kSlots >= 2 * kMostPrefixSymbols, "there are always free slots");

  std::vector<uint32_t> keys_;  // 0: a free slot
  std::vector<uint64_t> counts_;
  int64_t distinct_ = 0;
};

// Whole values as symbols, or none where too many differ, which shows after little more than so many elements.
Symbols ValuesOf(absl::Span<const float> step) {
  ValueCounter counter;
  bool few = true;
  ForGroups(step, [&](size_t begin, size_t end) {
    for (size_t i = begin; few && i < end; ++i) few = FloatBits(step[i]) == 0 || counter.Add(FloatBits(step[i]));
  });
  return few ? counter.TakeSymbols() : Symbols();
}

// Finds the code words of values, and writes both.
class ValueWriter {
 public:
  explicit ValueWriter(const Symbols& symbols) : low_bits_(symbols.low_bits), by_octave_(kOctaves) {
    const std::vector<PrefixWord> words =
        symbols.values.empty() ? std::vector<PrefixWord>() : *PrefixWords(symbols.lengths);
    if (low_bits_ == 0) {
      by_slot_.resize(kWordSlots);
      for (uint32_t value : symbols.values) slots_.Add(value);
    }
    for (size_t i = 0; i < symbols.values.size(); ++i) {
      (low_bits_ == 0 ? by_slot_[slots_.SlotOf(symbols.values[i])] : by_octave_[symbols.values[i]]) = words[i];
    }
    bytes_.resize((kMostPrefixBits + kFractionBits) * kSparseStepBlock / 8 + 16);
  }

  void Write(absl::Span<const uint32_t> values, BitWriter* writer) {
    if (low_bits_ == 0) {
      Pack(values, writer, [this](uint32_t bits) { return by_slot_[slots_.SlotOf(bits)]; });
    } else {
      Pack(values, writer, [this](uint32_t bits) { return by_octave_[bits >> kFractionBits]; });
    }
  }

 private:
  static constexpr size_t kWordSlots = size_t{1} << 15;

  template <typename WordOf>
  void Pack(absl::Span<const uint32_t> values, BitWriter* writer, const WordOf& word_of) {
    const uint32_t low_mask = (uint32_t{1} << low_bits_) - 1;
    char* to = bytes_.data();
    uint64_t word = 0;
    int used = 0;  // below 8 between values, and a value adds 38 at most
    for (const uint32_t bits : values) {
      const PrefixWord code = word_of(bits);
      word |= (static_cast<uint64_t>(bits & low_mask) << code.length | code.bits) << used;
      used += code.length + low_bits_;
      StoreLittle64(word, to);
      to += used / 8;
      word >>= used / 8 * 8;
      used %= 8;
    }
    StoreLittle64(word, to);
    writer->PutBits(bytes_.data(), 8 * (to - bytes_.data()) + used);
  }

  const int low_bits_;
  std::vector<PrefixWord> by_octave_;
  ValueCounter slots_;
  std::vector<PrefixWord> by_slot_;
  std::vector<char> bytes_;
};

void PutSymbols(const Symbols& symbols, BitWriter* writer) {
  writer->Put(symbols.low_bits == 0 ? 1 : 0, kSplitBits);
  writer->Put(symbols.values.size(), kSymbolsBits);
  for (uint32_t value : symbols.values) writer->Put(value, 32 - symbols.low_bits);
  if (symbols.values.size() < 2) return;
  for (uint8_t length : symbols.lengths) writer->Put(length, kCodeLengthBits);
}

// The elements of one block that are listed.
struct Block {
  std::vector<uint32_t> positions = std::vector<uint32_t>(kSparseStepBlock + 1);
  std::vector<uint32_t> values = std::vector<uint32_t>(kSparseStepBlock + 1);
  size_t count = 0;

  void Collect(absl::Span<const float> elements) {
    size_t found = 0;  // without a branch: what is not listed is overwritten
    ForGroups(elements, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const uint32_t bits = FloatBits(elements[i]);
        positions[found] = static_cast<uint32_t>(i);
        values[found] = bits;
        found += static_cast<size_t>(bits != 0);
      }
    });
    count = found;
  }
};

// The positions below `size` that are not among those.
std::vector<uint32_t> OthersOf(absl::Span<const uint32_t> positions, uint32_t size) {
  std::vector<uint32_t> others(size - positions.size());
  auto to = others.begin();
  uint32_t next = 0;
  const auto take_until = [&](uint32_t end) {
    for (; next < end; ++next) *to++ = next;
    ++next;
  };
  for (uint32_t position : positions) take_until(position);
  take_until(size);
  return others;
}

void PutBlock(const Block& block, uint32_t size, ValueWriter* values, BitWriter* writer) {
  writer->Put(block.count, kCountBits);
  const absl::Span<const uint32_t> listed = absl::MakeSpan(block.positions.data(), block.count);
  const std::vector<uint32_t> others = 2 * block.count <= size ? std::vector<uint32_t>() : OthersOf(listed, size);
  const absl::Span<const uint32_t> coded = 2 * block.count <= size ? listed : absl::MakeConstSpan(others);
  if (!coded.empty()) RiceCoder().Put(coded, size, writer);
  values->Write(absl::MakeSpan(block.values.data(), block.count), writer);
}

absl::Status EndsEarly() { return absl::InvalidArgumentError("a sparse step ends early"); }

// A code that was read, by which values are.
struct ValueTable {
  int low_bits = 0;
  std::vector<uint32_t> values;
  PrefixTable table;
};

// Neither a value of 0, which is not listed, nor what is not finite.
bool IsUsable(uint32_t symbol, int low_bits) {
  return low_bits == 0 ? symbol != 0 && MagnitudeBits(symbol) < kInfinityBits
                       : MagnitudeBits(symbol << low_bits) < kInfinityBits;
}

absl::StatusOr<ValueTable> ReadSymbols(BitReader* reader) {
  uint32_t whole, number;
  if (!reader->Get(kSplitBits, &whole) || !reader->Get(kSymbolsBits, &number)) return EndsEarly();
  const int low_bits = whole == 1 ? 0 : kFractionBits;
  if (number > kMostPrefixSymbols || reader->remaining() < uint64_t{number} * (32 - low_bits)) return EndsEarly();
  std::vector<uint32_t> values(number);
  for (uint32_t i = 0; i < number; ++i) {
    reader->Get(32 - low_bits, &values[i]);
    if (!IsUsable(values[i], low_bits) || (i > 0 && values[i] <= values[i - 1])) {
      return absl::InvalidArgumentError(absl::StrCat("symbol ", i, " of a sparse step is unusable"));
    }
  }
  std::vector<PrefixWord> words;
  if (number > 0) {
    std::vector<uint8_t> lengths(number, 0);
    for (uint32_t i = 0, length; number > 1 && i < number; ++i) {
      if (!reader->Get(kCodeLengthBits, &length)) return EndsEarly();
      lengths[i] = static_cast<uint8_t>(length);
    }
    TERSE_ASSIGN_OR_RETURN(words, PrefixWords(lengths));
  }
  return ValueTable{low_bits, std::move(values), PrefixTable(words)};
}

// Reads positions below `size`, and turns them into those that they leave out where they are the others.
absl::Status ReadPositions(uint32_t count, uint32_t size, BitReader* reader, std::vector<uint32_t>* positions) {
  const bool lists = 2 * count <= size;
  std::vector<uint32_t> coded(lists ? count : size - count);
  if (!coded.empty()) {
    TERSE_ASSIGN_OR_RETURN(const std::unique_ptr<PositionReader> rice,
                           RiceCoder().Open(static_cast<int64_t>(coded.size()), size, *reader));
    TERSE_RETURN_IF_ERROR(rice->Next(absl::MakeSpan(coded)));
    TERSE_ASSIGN_OR_RETURN(*reader, rice->Finish());
  }
  *positions = lists ? std::move(coded) : OthersOf(coded, size);
  return absl::OkStatus();
}

absl::Status ReadValues(const ValueTable& values, absl::Span<const uint32_t> positions, BitReader* reader,
                        float* block) {
  for (const uint32_t position : positions) {
    const PrefixTable::Entry entry = values.table.Find(reader->Window());
    uint32_t low;
    if (!reader->Skip(entry.length) || !reader->Get(values.low_bits, &low)) return EndsEarly();
    const uint32_t bits = values.values[entry.symbol] << values.low_bits | low;
    if (bits == 0) return absl::InvalidArgumentError("a sparse step lists a zero");
    block[position] = FloatFromBits(bits);
  }
  return absl::OkStatus();
}

}  // namespace

bool AppendSparseStep(absl::Span<const float> step, int64_t most_bytes, std::string* out) {
  Symbols symbols = OctavesOf(step);
  if (Symbols whole = ValuesOf(step); !whole.values.empty() && whole.Bits() < symbols.Bits()) {
    symbols = std::move(whole);
  }
  const int64_t size = static_cast<int64_t>(step.size());
  const int64_t blocks = (size + kSparseStepBlock - 1) / kSparseStepBlock;
  const int64_t bits = kSplitBits + kSymbolsBits + symbols.Bits() + kCountBits * blocks;
  if (bits / 8 >= most_bytes) return false;
  const size_t before = out->size();
  BitWriter writer(out);
  writer.Reserve(8 * std::min(most_bytes, (bits + size) / 8 + 1));
  PutSymbols(symbols, &writer);
  ValueWriter values(symbols);
  Block block;
  for (int64_t begin = 0; begin < size; begin += kSparseStepBlock) {
    const uint32_t elements = static_cast<uint32_t>(BlockSize(begin, size));
    block.Collect(step.subspan(begin, elements));
    PutBlock(block, elements, &values, &writer);
  }
  writer.Finish();
  if (static_cast<int64_t>(out->size() - before) < most_bytes) return true;
  out->resize(before);
  return false;
}

absl::Status ReadSparseStep(const Layout& layout, absl::string_view body, absl::Span<float> step) {
  BitReader reader(body);
  TERSE_ASSIGN_OR_RETURN(const ValueTable values, ReadSymbols(&reader));
  std::fill(step.begin(), step.end(), 0.0f);
  std::vector<uint32_t> positions;
  for (int64_t begin = 0; begin < layout.size(); begin += kSparseStepBlock) {
    const uint32_t size = static_cast<uint32_t>(BlockSize(begin, layout.size()));
    uint32_t count;
    if (!reader.Get(kCountBits, &count)) return EndsEarly();
    if (count > size || (count > 0 && values.values.empty())) {
      return absl::InvalidArgumentError("a sparse step lists more elements than it can have");
    }
    TERSE_RETURN_IF_ERROR(ReadPositions(count, size, &reader, &positions));
    TERSE_RETURN_IF_ERROR(ReadValues(values, positions, &reader, step.data() + begin));
  }
  if (reader.AtPaddedEnd()) return absl::OkStatus();
  return absl::InvalidArgumentError("a sparse step with bits behind its last value");
}

}  // namespace terse
