#include "compression/shared_coder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "compression/gap_code.h"
#include "compression/rice.h"
#include "compression/shared_kernels.h"

namespace terse {
namespace {

constexpr char kName[] = "shared";
constexpr int kStateBits = 32;
constexpr int kLengthBits = 4;  // of the number of bits of the state that is written, less kSharedWordBits + 1
constexpr int kMostSlotBits = 15;
constexpr int64_t kFewest = 32;  // positions: fewer do not pay for the state
// exp(-y / 2^32) * 2^32 for y <= 2^32, as ((1 - y / 64)^64).
uint64_t ExpMinus(uint64_t y) {
  uint64_t power = (uint64_t{1} << 32) - (y >> 6);
  for (int i = 0; i < 6; ++i) power = power * power >> 32;
  return power;
}

// nullopt where only Rice is used: without a history, for few positions, and for so sparse ones that the coder has not
// the bits.
absl::optional<SharedModel> MakeModel(const PositionHistory& history, int64_t count) {
  if (history.empty() || count < kFewest) return absl::nullopt;
  SharedModel model;
  const int64_t mass = history.size() << PositionHistory::kMeanMassBits;
  while (count << (model.slot_bits + 1) <= mass) ++model.slot_bits;
  if (model.slot_bits > kMostSlotBits) return absl::nullopt;
  // A gap goes on past a window with this probability, in 2^-32.
  const uint64_t on =
      ExpMinus(static_cast<uint64_t>((static_cast<__uint128_t>(count) << (32 + model.slot_bits)) / mass));
  uint64_t reached = uint64_t{1} << 32;
  uint32_t begin = 0;
  for (int q = 0; q < kSharedWindows - 1; ++q) {
    const uint64_t next = reached * on >> 32;
    const uint32_t frequency =
        static_cast<uint32_t>(std::max<uint64_t>(1, (reached - next) >> (32 - kSharedScaleBits)));
    model.windows[q] = {frequency, begin};
    begin += frequency;
    reached = next;
  }
  // The rounding is downwards, but for windows that would have nothing.
  const uint32_t over = begin >= kSharedScale ? begin - kSharedScale + 1 : 0;
  model.windows[0].frequency -= over;
  for (int q = 1; q < kSharedWindows - 1; ++q) model.windows[q].begin -= over;
  model.windows[kSharedWindows - 1] = {kSharedScale - (begin - over), begin - over};
  return model;
}

// What the coder sees of a position.
struct Symbol {
  uint32_t windows;  // whole ones before it
  uint32_t slot;     // first of its slots in the last one
  uint32_t slots;    // how many it has there
};

std::vector<Symbol> MakeSymbols(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
                                const SharedModel& model) {
  std::vector<Symbol> symbols;
  symbols.reserve(positions.size());
  std::array<uint8_t, MassRun::kMost> masses;
  const uint64_t window = uint64_t{1} << model.slot_bits;
  uint64_t gap = 0;  // mass since the position before
  auto next = positions.begin();
  for (int64_t begin = 0; next != positions.end(); begin += MassRun::kMost) {
    const int64_t count = std::min(MassRun::kMost, history.size() - begin);
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
  Encoder(const SharedModel& model, uint32_t left_over) : model_(model), state_(kSharedLowest + left_over) {}

  void Take(const Symbol& symbol) {
    Push({symbol.slots, symbol.slot}, model_.slot_bits);
    constexpr uint32_t kAgain = kSharedWindows - 1;
    Push(model_.windows[symbol.windows % kAgain], kSharedScaleBits);
    for (uint32_t left = symbol.windows / kAgain; left > 0; --left) Push(model_.windows[kAgain], kSharedScaleBits);
  }

  uint32_t state() const { return state_; }
  const std::vector<uint16_t>& words() const { return words_; }

 private:
  void Push(SharedInterval interval, int scale_bits) {
    if (state_ >= uint64_t{interval.frequency} << (kStateBits - scale_bits)) {
      words_.push_back(static_cast<uint16_t>(state_ & (kSharedLowest - 1)));
      state_ >>= kSharedWordBits;
    }
    state_ = (state_ / interval.frequency << scale_bits) + state_ % interval.frequency + interval.begin;
  }

  const SharedModel& model_;
  uint32_t state_;
  std::vector<uint16_t> words_;
};

int BitLength(uint32_t state) { return 32 - __builtin_clz(state); }

struct Encoded {
  int64_t bits() const {
    return kLengthBits + BitLength(state) - 1 + kSharedWordBits * static_cast<int64_t>(words.size());
  }

  uint32_t state = 0;
  std::vector<uint16_t> words;  // in reverse
};

Encoded Encode(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
               const SharedModel& model) {
  const absl::Span<const uint32_t> all_but_last = positions.first(positions.size() - 1);
  const std::vector<Symbol> symbols = MakeSymbols(history, side, all_but_last, model);
  Encoder encoder(model, positions.back() - all_but_last.back() - 1);
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) encoder.Take(*symbol);
  return {encoder.state(), encoder.words()};
}

// nullopt where Rice is as good.
absl::optional<Encoded> EncodeIfShorter(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
                                        const SharedModel& model) {
  Encoded encoded = Encode(history, side, positions, model);
  if (encoded.bits() >= RiceCoder().Bits(positions, history.size())) return absl::nullopt;
  return encoded;
}

// What a stream of the coder says, whatever the masses. Shared by a reader and its clones.
struct Script {
  SharedModel model;
  std::array<uint8_t, kSharedScale> windows;
  std::vector<uint16_t> words;
  uint32_t state = 0;
  BitReader stream;  // at the first word
};

// INVALID_ARGUMENT for what cannot begin a stream. Takes no more words than positions that are worth coding so can
// have.
absl::StatusOr<std::shared_ptr<const Script>> ReadScript(const SharedModel& model, int64_t most_bits,
                                                         BitReader stream) {
  auto script = std::make_shared<Script>();
  uint32_t length = 0;
  if (!stream.Get(kLengthBits, &length)) return PositionsEndEarly(kName);
  length += kSharedWordBits;
  if (!stream.Get(static_cast<int>(length), &script->state)) return PositionsEndEarly(kName);
  script->state |= 1u << length;
  script->stream = stream;
  script->model = model;
  for (int q = 0; q < kSharedWindows; ++q) {
    const SharedInterval interval = model.windows[q];
    std::fill_n(script->windows.begin() + interval.begin, interval.frequency, static_cast<uint8_t>(q));
  }
  const int64_t words = std::min<int64_t>(stream.remaining(), most_bits) / kSharedWordBits;
  script->words.reserve(words + kSharedPad);
  for (int64_t i = 0; i < words; ++i) {
    uint32_t word = 0;
    stream.Get(kSharedWordBits, &word);
    script->words.push_back(static_cast<uint16_t>(word));
  }
  script->words.resize(words + kSharedPad);
  return std::shared_ptr<const Script>(std::move(script));
}

class SharedReader final : public PositionReader {
 public:
  SharedReader(const PositionHistory* history, int side, int64_t count, std::shared_ptr<const Script> script)
      : history_(history), side_(side), left_(count), script_(std::move(script)) {
    cursor_.model = &script_->model;
    cursor_.windows = script_->windows.data();
    cursor_.words = script_->words.data();
    cursor_.words_left = static_cast<int64_t>(script_->words.size()) - kSharedPad;
    cursor_.state = script_->state;
  }

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<SharedReader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    if (positions.empty()) return absl::OkStatus();
    const int64_t count = static_cast<int64_t>(positions.size());
    left_ -= count;
    const int64_t coded = count - (left_ == 0);
    cursor_.decoded = 0;
    cursor_.run = &run_;
    while (true) {
      switch (GetSharedKernels().decode(&cursor_, coded, positions.data())) {
        case SharedStop::kDone:
          return left_ == 0 ? LastPosition(&positions.back()) : absl::OkStatus();
        case SharedStop::kEndsEarly:
          return PositionsEndEarly(kName);
        case SharedStop::kNoElement:
          return RefusePositions(kName, "a slot that no element has");
        case SharedStop::kNeedsMasses:
          if (!NextRun()) return PositionPastTheEnd(kName);
      }
    }
  }

  absl::StatusOr<BitReader> Finish() override {
    BitReader after = script_->stream;
    after.Skip(static_cast<uint64_t>(kSharedWordBits * (cursor_.words - script_->words.data())));
    return after;
  }

 private:
  // What the coder has left over.
  absl::Status LastPosition(uint32_t* position) {
    const int64_t last = run_.begin + cursor_.at + int64_t{cursor_.state - kSharedLowest};
    if (last >= history_->size()) return PositionPastTheEnd(kName);
    *position = static_cast<uint32_t>(last);
    return absl::OkStatus();
  }

  // The masses of the next elements; false when there are none.
  bool NextRun() {
    cursor_.window -= run_.total;
    cursor_.at = 0;
    cursor_.passed = 0;
    run_.begin += run_.count;
    run_.count = std::min(MassRun::kMost, history_->size() - run_.begin);
    history_->Masses(side_, run_.begin, absl::MakeSpan(run_.masses.data(), run_.count));
    GetSharedKernels().sum(&run_);
    return run_.count > 0;
  }

  const PositionHistory* history_;
  int side_;
  int64_t left_;  // positions that are still to come
  std::shared_ptr<const Script> script_;
  SharedCursor cursor_;
  MassRun run_;
};

}  // namespace

absl::string_view SharedCoder::name() const { return kName; }

int64_t SharedCoder::Bits(absl::Span<const uint32_t> positions, int64_t size) const {
  const int64_t rice = RiceCoder().Bits(positions, size);
  const absl::optional<SharedModel> model = MakeModel(*history_, positions.size());
  if (!model.has_value()) return rice;
  return 1 + std::min(rice, Encode(*history_, side_, positions, *model).bits());
}

int64_t SharedCoder::MaxBits(int64_t count, int64_t size) const { return 1 + RiceCoder().MaxBits(count, size); }

void SharedCoder::Put(absl::Span<const uint32_t> positions, int64_t size, BitWriter* writer) const {
  const absl::optional<SharedModel> model = MakeModel(*history_, positions.size());
  if (!model.has_value()) return RiceCoder().Put(positions, size, writer);
  const absl::optional<Encoded> encoded = EncodeIfShorter(*history_, side_, positions, *model);
  writer->Put(encoded.has_value() ? 0 : 1, 1);
  if (!encoded.has_value()) return RiceCoder().Put(positions, size, writer);
  const int length = BitLength(encoded->state);
  writer->Put(length - kSharedWordBits - 1, kLengthBits);
  writer->Put(encoded->state - (1u << (length - 1)), length - 1);
  for (auto word = encoded->words.rbegin(); word != encoded->words.rend(); ++word) writer->Put(*word, kSharedWordBits);
}

absl::StatusOr<std::unique_ptr<PositionReader>> SharedCoder::Open(int64_t count, int64_t size,
                                                                  const BitReader& stream) const {
  const absl::optional<SharedModel> model = MakeModel(*history_, count);
  if (!model.has_value()) return RiceCoder().Open(count, size, stream);
  BitReader rest = stream;
  uint32_t is_rice = 0;
  if (!rest.Get(1, &is_rice)) return PositionsEndEarly(kName);
  if (is_rice == 1) return RiceCoder().Open(count, size, rest);
  absl::StatusOr<std::shared_ptr<const Script>> script = ReadScript(*model, RiceCoder().MaxBits(count, size), rest);
  if (!script.ok()) return script.status();
  return std::unique_ptr<PositionReader>(std::make_unique<SharedReader>(history_, side_, count, *std::move(script)));
}

}  // namespace terse
