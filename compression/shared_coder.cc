#include "compression/shared_coder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "compression/gap_code.h"
#include "compression/rice.h"

namespace terse {
namespace {

constexpr char kName[] = "shared";
constexpr int kScaleBits = 12;
constexpr uint32_t kScale = 1 << kScaleBits;
constexpr int kWindows = 16;  // the last one means: none of the others, look again behind them
// The state is at least kLowest, and takes or gives kWordBits at a time.
constexpr int kWordBits = 16;
constexpr uint32_t kLowest = 1 << kWordBits;
constexpr int kStateBits = 32;
constexpr int kLengthBits = 4;  // of the number of bits of the state that is written, less kWordBits + 1
constexpr int kMostSlotBits = 15;
constexpr int64_t kFewest = 32;    // positions: fewer do not pay for the state
constexpr int64_t kChunk = 4096;   // elements whose masses are made at once

struct Interval {
  uint32_t frequency = 0;
  uint32_t begin = 0;
};

// How a number of positions is coded, whatever the masses: a gap is whole windows of 2^slot_bits mass,
// and a slot in the last one.
struct Model {
  int slot_bits = 0;
  std::array<Interval, kWindows> windows;
};

// exp(-y / 2^32) * 2^32 for y <= 2^32, as ((1 - y / 64)^64).
uint64_t ExpMinus(uint64_t y) {
  uint64_t power = (uint64_t{1} << 32) - (y >> 6);
  for (int i = 0; i < 6; ++i) power = power * power >> 32;
  return power;
}

// nullopt where only Rice is used: without a history, for few positions, and for so sparse ones that the coder has not
// the bits.
absl::optional<Model> MakeModel(const PositionHistory& history, int64_t count) {
  if (history.empty() || count < kFewest) return absl::nullopt;
  Model model;
  const int64_t mass = history.size() << PositionHistory::kMeanMassBits;
  while (count << (model.slot_bits + 1) <= mass) ++model.slot_bits;
  if (model.slot_bits > kMostSlotBits) return absl::nullopt;
  // A gap goes on past a window with this probability, in 2^-32.
  const uint64_t on =
      ExpMinus(static_cast<uint64_t>((static_cast<__uint128_t>(count) << (32 + model.slot_bits)) / mass));
  uint64_t reached = uint64_t{1} << 32;
  uint32_t begin = 0;
  for (int q = 0; q < kWindows - 1; ++q) {
    const uint64_t next = reached * on >> 32;
    const uint32_t frequency = static_cast<uint32_t>(std::max<uint64_t>(1, (reached - next) >> (32 - kScaleBits)));
    model.windows[q] = {frequency, begin};
    begin += frequency;
    reached = next;
  }
  // The rounding is downwards, but for windows that would have nothing.
  const uint32_t over = begin >= kScale ? begin - kScale + 1 : 0;
  model.windows[0].frequency -= over;
  for (int q = 1; q < kWindows - 1; ++q) model.windows[q].begin -= over;
  model.windows[kWindows - 1] = {kScale - (begin - over), begin - over};
  return model;
}

// What the coder sees of a position.
struct Symbol {
  uint32_t windows;  // whole ones before it
  uint32_t slot;     // first of its slots in the last one
  uint32_t slots;    // how many it has there
};

std::vector<Symbol> MakeSymbols(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
                                const Model& model) {
  std::vector<Symbol> symbols;
  symbols.reserve(positions.size());
  std::array<uint8_t, kChunk> masses;
  const uint64_t window = uint64_t{1} << model.slot_bits;
  uint64_t gap = 0;  // mass since the position before
  auto next = positions.begin();
  for (int64_t begin = 0; next != positions.end(); begin += kChunk) {
    const int64_t count = std::min(kChunk, history.size() - begin);
    history.Masses(side, begin, absl::MakeSpan(masses.data(), count));
    for (int64_t i = 0; i < count; ++i) {
      if (next == positions.end() || *next != begin + i) {
        gap += masses[i];
        continue;
      }
      const uint32_t slot = static_cast<uint32_t>(gap & (window - 1));
      symbols.push_back({static_cast<uint32_t>(gap >> model.slot_bits), slot,
                         static_cast<uint32_t>(std::min<uint64_t>(masses[i], window - slot))});
      gap = 0;
      ++next;
    }
  }
  return symbols;
}

// Takes the symbols in, the last one first; gives the words that the reader takes back, in reverse. It begins with a
// number that the reader has left over at the end: the zeros of the last gap.
class Encoder {
 public:
  Encoder(const Model& model, uint32_t left_over) : model_(model), state_(kLowest + left_over) {}

  void Take(const Symbol& symbol) {
    Push({symbol.slots, symbol.slot}, model_.slot_bits);
    constexpr uint32_t kAgain = kWindows - 1;
    Push(model_.windows[symbol.windows % kAgain], kScaleBits);
    for (uint32_t left = symbol.windows / kAgain; left > 0; --left) Push(model_.windows[kAgain], kScaleBits);
  }

  uint32_t state() const { return state_; }
  const std::vector<uint16_t>& words() const { return words_; }

 private:
  void Push(Interval interval, int scale_bits) {
    if (state_ >= uint64_t{interval.frequency} << (kStateBits - scale_bits)) {
      words_.push_back(static_cast<uint16_t>(state_ & (kLowest - 1)));
      state_ >>= kWordBits;
    }
    state_ = (state_ / interval.frequency << scale_bits) + state_ % interval.frequency + interval.begin;
  }

  const Model& model_;
  uint32_t state_;
  std::vector<uint16_t> words_;
};

int BitLength(uint32_t state) { return 32 - __builtin_clz(state); }

struct Encoded {
  int64_t bits() const {
    return kLengthBits + BitLength(state) - 1 + kWordBits * static_cast<int64_t>(words.size());
  }

  uint32_t state = 0;
  std::vector<uint16_t> words;  // in reverse
};

Encoded Encode(const PositionHistory& history, int side, absl::Span<const uint32_t> positions, const Model& model) {
  const absl::Span<const uint32_t> all_but_last = positions.first(positions.size() - 1);
  const std::vector<Symbol> symbols = MakeSymbols(history, side, all_but_last, model);
  Encoder encoder(model, positions.back() - all_but_last.back() - 1);
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) encoder.Take(*symbol);
  return {encoder.state(), encoder.words()};
}

// nullopt where Rice is as good.
absl::optional<Encoded> EncodeIfShorter(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
                                        const Model& model) {
  Encoded encoded = Encode(history, side, positions, model);
  if (encoded.bits() >= RiceCoder().Bits(positions, history.size())) return absl::nullopt;
  return encoded;
}

// The window that each of the kScale low values of the state stands for.
using Windows = std::array<uint8_t, kScale>;

std::shared_ptr<const Windows> MakeWindows(const Model& model) {
  auto windows = std::make_shared<Windows>();
  for (int q = 0; q < kWindows; ++q) {
    const Interval interval = model.windows[q];
    std::fill_n(windows->begin() + interval.begin, interval.frequency, static_cast<uint8_t>(q));
  }
  return windows;
}

class SharedReader final : public PositionReader {
 public:
  SharedReader(const PositionHistory* history, int side, const Model& model, int64_t count, uint32_t state,
               const BitReader& stream)
      : history_(history), side_(side), left_(count), model_(model), windows_(MakeWindows(model)), state_(state), stream_(stream) {}

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<SharedReader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    for (uint32_t& position : positions) {
      const absl::Status status = --left_ > 0 ? NextPosition(&position) : LastPosition(&position);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() override { return stream_; }

 private:
  // False at the stream's end.
  bool Refill() {
    if (state_ >= kLowest) return true;
    uint32_t word = 0;
    if (!stream_.Get(kWordBits, &word)) return false;
    state_ = state_ << kWordBits | word;
    return true;
  }

  bool PopWindows(uint64_t* windows) {
    *windows = 0;
    while (true) {
      const uint32_t value = state_ % kScale;
      const int q = (*windows_)[value];
      const Interval interval = model_.windows[q];
      state_ = interval.frequency * (state_ >> kScaleBits) + value - interval.begin;
      if (!Refill()) return false;
      *windows += q;
      if (q != kWindows - 1) return true;
    }
  }

  absl::Status NextPosition(uint32_t* position) {
    uint64_t windows = 0;
    if (!PopWindows(&windows)) return PositionsEndEarly(kName);
    const uint32_t slot = state_ & ((1u << model_.slot_bits) - 1);
    const uint64_t window_begin = windows << model_.slot_bits;
    const uint64_t wanted = window_begin + slot;
    // Goes to the element that has this mass, counted from the position before.
    uint64_t gap = 0;
    while (true) {
      if (at_ == filled_ && !Fill()) return PositionPastTheEnd(kName);
      if (gap + masses_[at_] > wanted) break;
      gap += masses_[at_++];
    }
    if (gap < window_begin) return RefusePositions(kName, "a slot that no element has");
    const uint32_t first = static_cast<uint32_t>(gap - window_begin);
    const uint32_t slots = std::min<uint32_t>(masses_[at_], (1u << model_.slot_bits) - first);
    state_ = slots * (state_ >> model_.slot_bits) + slot - first;
    if (!Refill()) return PositionsEndEarly(kName);
    *position = static_cast<uint32_t>(begin_ + at_++);
    return absl::OkStatus();
  }

  // What the coder has left over.
  absl::Status LastPosition(uint32_t* position) {
    const int64_t last = begin_ + at_ + (state_ - kLowest);
    if (last >= history_->size()) return PositionPastTheEnd(kName);
    *position = static_cast<uint32_t>(last);
    return absl::OkStatus();
  }

  // The masses of the next elements; false when there are none.
  bool Fill() {
    begin_ += filled_;
    filled_ = std::min(kChunk, history_->size() - begin_);
    at_ = 0;
    history_->Masses(side_, begin_, absl::MakeSpan(masses_.data(), filled_));
    return filled_ > 0;
  }

  const PositionHistory* history_;
  int side_;
  int64_t left_;  // positions that are still to come
  Model model_;
  std::shared_ptr<const Windows> windows_;
  uint32_t state_;
  BitReader stream_;
  int64_t begin_ = 0;   // element of masses_[0]
  int64_t filled_ = 0;  // of masses_
  int64_t at_ = 0;      // the next element that may come
  std::array<uint8_t, kChunk> masses_;
};

}  // namespace

absl::string_view SharedCoder::name() const { return kName; }

int64_t SharedCoder::Bits(absl::Span<const uint32_t> positions, int64_t size) const {
  const int64_t rice = RiceCoder().Bits(positions, size);
  const absl::optional<Model> model = MakeModel(*history_, positions.size());
  if (!model.has_value()) return rice;
  return 1 + std::min(rice, Encode(*history_, side_, positions, *model).bits());
}

int64_t SharedCoder::MaxBits(int64_t count, int64_t size) const { return 1 + RiceCoder().MaxBits(count, size); }

void SharedCoder::Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const {
  const absl::optional<Model> model = MakeModel(*history_, positions.size());
  if (!model.has_value()) return RiceCoder().Put(positions, size, writer);
  const absl::optional<Encoded> encoded = EncodeIfShorter(*history_, side_, positions, *model);
  writer->Put(encoded.has_value() ? 0 : 1, 1);
  if (!encoded.has_value()) return RiceCoder().Put(positions, size, writer);
  const int length = BitLength(encoded->state);
  writer->Put(length - kWordBits - 1, kLengthBits);
  writer->Put(encoded->state - (1u << (length - 1)), length - 1);
  for (auto word = encoded->words.rbegin(); word != encoded->words.rend(); ++word) writer->Put(*word, kWordBits);
}

absl::StatusOr<std::unique_ptr<PositionReader>> SharedCoder::Open(int64_t count, int64_t size,
                                                                  const BitReader& stream) const {
  const absl::optional<Model> model = MakeModel(*history_, count);
  if (!model.has_value()) return RiceCoder().Open(count, size, stream);
  BitReader rest = stream;
  uint32_t is_rice = 0, length = 0, state = 0;
  if (!rest.Get(1, &is_rice)) return PositionsEndEarly(kName);
  if (is_rice == 1) return RiceCoder().Open(count, size, rest);
  if (!rest.Get(kLengthBits, &length)) return PositionsEndEarly(kName);
  length += kWordBits;
  if (!rest.Get(length, &state)) return PositionsEndEarly(kName);
  state |= 1u << length;
  return std::unique_ptr<PositionReader>(
      std::make_unique<SharedReader>(history_, side_, *model, count, state, rest));
}

}  // namespace terse
