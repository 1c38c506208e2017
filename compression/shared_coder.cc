#include "compression/shared_coder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "compression/bit_stream.h"
#include "compression/gap_code.h"
#include "compression/rice.h"
#include "compression/shared_kernels.h"

namespace terse {
namespace {

constexpr char kName[] = "shared";
constexpr int kStateBits = 32;
constexpr int kStateLengthBits = 4;  // of the number of bits of the state that is written, less kSharedWordBits + 1
constexpr int kMostSlotBits = 15;
constexpr int64_t kFewest = 32;  // positions: fewer do not pay for the state
constexpr int64_t kFewestOfTwoLanes = 2048;

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

// A position as the coder sees it.
struct Symbol {
  uint32_t windows;  // whole ones before it
  uint32_t slot;     // first of its slots in the last one
  uint32_t slots;    // how many it has there
};

// The way in which the positions are dealt out to lanes. The last position of each lane's stretch but the last is not
// coded but written as it is: it says where the stretch ends.
struct LaneDeal {
  int lanes = 1;
  int end_bits = 0;                                    // of such a position
  std::array<int64_t, kSharedMostLanes + 1> begins{};  // indices of the lanes' first positions, then the count

  // Positions of a lane, without the one that is written.
  int64_t count(int lane) const { return begins[lane + 1] - begins[lane] - (lane + 1 < lanes); }
};

LaneDeal Deal(int64_t count, int64_t size) {
  LaneDeal deal;
  deal.lanes = count < kFewestOfTwoLanes ? 1 : kSharedMostLanes;
  while (int64_t{1} << deal.end_bits < size) ++deal.end_bits;
  const int64_t coded = count - (deal.lanes - 1);
  for (int lane = 0; lane < deal.lanes; ++lane) {
    const int64_t of_lane = coded / deal.lanes + (lane < coded % deal.lanes);
    deal.begins[lane + 1] = deal.begins[lane] + of_lane + (lane + 1 < deal.lanes);
  }
  return deal;
}

// Fills `run` with the masses of the elements from `begin` on, as many as it takes and lie before `end`.
void FillRun(const PositionHistory& history, int side, int64_t begin, int64_t end, MassRun* run) {
  run->begin = begin;
  run->count = std::min(MassRun::kMost, end - begin);
  history.Masses(side, begin, absl::MakeSpan(run->masses.data(), run->count));
  GetSharedKernels().sum(run);
}

// Returns the mass of the elements of the run before element `index` of it.
int64_t MassBefore(const MassRun& run, int64_t index) {
  const int64_t group = index / MassRun::kGroup;
  const auto* const masses = reinterpret_cast<const char*>(&run.masses[group * MassRun::kGroup]);
  const uint64_t before = LoadLittle64(masses) & ((uint64_t{1} << (index % MassRun::kGroup * 8)) - 1);
  return run.sums[group] + static_cast<int64_t>(SumOfBytes(before));
}

// Returns the symbols of the positions, which lie at element `begin` or after it.
std::vector<Symbol> MakeSymbols(const PositionHistory& history, int side, int64_t begin,
                                absl::Span<const uint32_t> positions, const SharedModel& model) {
  std::vector<Symbol> symbols;
  symbols.reserve(positions.size());
  MassRun run;
  const uint64_t window = uint64_t{1} << model.slot_bits;
  uint64_t gap = 0;  // mass since the position before, up to the run
  for (auto next = positions.begin(); next != positions.end(); begin += run.count) {
    FillRun(history, side, begin, history.size(), &run);
    int64_t passed = 0;  // mass of the run up to the position before
    for (; next != positions.end() && *next < begin + run.count; ++next) {
      const int64_t before = MassBefore(run, *next - begin);
      gap += static_cast<uint64_t>(before - passed);
      const uint32_t mass = run.masses[*next - begin];
      const uint32_t slot = static_cast<uint32_t>(gap & (window - 1));
      symbols.push_back({static_cast<uint32_t>(gap >> model.slot_bits), slot,
                         static_cast<uint32_t>(std::min<uint64_t>(mass, window - slot))});
      gap = 0;
      passed = before + mass;
    }
    gap += static_cast<uint64_t>(run.total - passed);
  }
  return symbols;
}

// Takes the symbols in, the last one first; gives the words that the reader takes back, in reverse. A state begins with
// a number that the reader has left over at the end: the zeros of its lane's last gap.
class Encoder {
 public:
  explicit Encoder(const SharedModel& model) : model_(model) {}

  void Take(const Symbol& symbol, uint32_t* state) {
    Push({symbol.slots, symbol.slot}, model_.slot_bits, state);
    constexpr uint32_t kAgain = kSharedWindows - 1;
    Push(model_.windows[symbol.windows % kAgain], kSharedScaleBits, state);
    for (uint32_t left = symbol.windows / kAgain; left > 0; --left) {
      Push(model_.windows[kAgain], kSharedScaleBits, state);
    }
  }

  const std::vector<uint16_t>& words() const { return words_; }

 private:
  void Push(SharedInterval interval, int scale_bits, uint32_t* state) {
    if (*state >= uint64_t{interval.frequency} << (kStateBits - scale_bits)) {
      words_.push_back(static_cast<uint16_t>(*state & (kSharedLowest - 1)));
      *state >>= kSharedWordBits;
    }
    *state = (*state / interval.frequency << scale_bits) + *state % interval.frequency + interval.begin;
  }

  const SharedModel& model_;
  std::vector<uint16_t> words_;
};

int BitLength(uint32_t state) { return 32 - __builtin_clz(state); }

struct Encoded {
  int64_t bits() const {
    int64_t bits = (deal.lanes - 1) * deal.end_bits + kSharedWordBits * static_cast<int64_t>(words.size());
    for (int lane = 0; lane < deal.lanes; ++lane) bits += kStateLengthBits + BitLength(states[lane]) - 1;
    return bits;
  }

  LaneDeal deal;
  std::array<uint32_t, kSharedMostLanes> states{};
  std::vector<uint16_t> words;  // in reverse
};

Encoded Encode(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
               const SharedModel& model) {
  Encoded encoded;
  encoded.deal = Deal(static_cast<int64_t>(positions.size()), history.size());
  std::array<std::vector<Symbol>, kSharedMostLanes> symbols;
  for (int lane = 0; lane < encoded.deal.lanes; ++lane) {
    const int64_t first = encoded.deal.begins[lane];
    const int64_t begin = first == 0 ? 0 : int64_t{positions[first - 1]} + 1;
    const auto of_lane = positions.subspan(first, encoded.deal.count(lane));
    symbols[lane] = MakeSymbols(history, side, begin, of_lane.first(of_lane.size() - 1), model);
    encoded.states[lane] = kSharedLowest + of_lane.back() - of_lane[of_lane.size() - 2] - 1;
  }
  Encoder encoder(model);
  for (size_t i = symbols[0].size(); i-- > 0;) {
    for (int lane = encoded.deal.lanes; lane-- > 0;) {
      if (i < symbols[lane].size()) encoder.Take(symbols[lane][i], &encoded.states[lane]);
    }
  }
  encoded.words = encoder.words();
  return encoded;
}

// Returns nullopt where Rice is as good.
absl::optional<Encoded> EncodeIfShorter(const PositionHistory& history, int side, absl::Span<const uint32_t> positions,
                                        const SharedModel& model) {
  Encoded encoded = Encode(history, side, positions, model);
  if (encoded.bits() >= RiceCoder().Bits(positions, history.size())) return absl::nullopt;
  return encoded;
}

bool NextRun(const SharedDecoding& decoding, SharedLane* lane) {
  FillRun(*decoding.history, decoding.side, lane->run.begin + lane->run.count, lane->end, &lane->run);
  return lane->run.count > 0;
}

// Decodes all positions of a tensor.
class Decoder {
 public:
  Decoder(const PositionHistory& history, int side, const SharedModel& model, absl::Span<uint32_t> positions)
      : deal_(Deal(static_cast<int64_t>(positions.size()), history.size())), positions_(positions) {
    decoding_.model = &model;
    decoding_.windows = windows_.data();
    decoding_.history = &history;
    decoding_.side = side;
    decoding_.next_run = NextRun;
    for (int q = 0; q < kSharedWindows; ++q) {
      const SharedInterval interval = model.windows[q];
      std::fill_n(windows_.begin() + interval.begin, interval.frequency, static_cast<uint8_t>(q));
    }
  }

  // Decodes the positions and returns the stream behind the last word.
  absl::StatusOr<BitReader> Decode(BitReader stream) {
    absl::Status status = ReadHeader(&stream);
    if (!status.ok()) return status;
    const std::vector<uint16_t> words = ReadWords(stream);
    decoding_.words = words.data();
    decoding_.words_end = words.data() + words.size() - kSharedPad;
    std::array<int64_t, kSharedMostLanes> counts;
    std::array<uint32_t*, kSharedMostLanes> to;
    for (int lane = 0; lane < deal_.lanes; ++lane) {
      counts[lane] = deal_.count(lane) - 1;
      to[lane] = positions_.data() + deal_.begins[lane];
    }
    switch (GetSharedKernels().decode(&decoding_, deal_.lanes, lanes_.data(), counts.data(), to.data())) {
      case SharedStop::kEndsEarly:
        return PositionsEndEarly(kName);
      case SharedStop::kNoElement:
        return RefusePositions(kName, "a slot that no element has");
      case SharedStop::kPastTheEnd:
        return PositionPastTheEnd(kName);
      case SharedStop::kDone:
        break;
    }
    status = LastPositions();
    if (!status.ok()) return status;
    stream.Skip(static_cast<uint64_t>(kSharedWordBits * (decoding_.words - words.data())));
    return stream;
  }

 private:
  absl::Status ReadHeader(BitReader* stream) {
    int64_t begin = 0;
    for (int lane = 0; lane < deal_.lanes; ++lane) {
      const bool is_last = lane + 1 == deal_.lanes;
      uint32_t length = 0, end = static_cast<uint32_t>(decoding_.history->size());
      if (!stream->Get(kStateLengthBits, &length)) return PositionsEndEarly(kName);
      length += kSharedWordBits;
      if (!stream->Get(static_cast<int>(length), &lanes_[lane].state)) return PositionsEndEarly(kName);
      lanes_[lane].state |= 1u << length;
      if (!is_last && !stream->Get(deal_.end_bits, &end)) return PositionsEndEarly(kName);
      if (end < begin) return RefusePositions(kName, "a lane that ends before it begins");
      if (end > decoding_.history->size() - !is_last) return PositionPastTheEnd(kName);
      lanes_[lane].run.begin = begin;
      lanes_[lane].end = end;
      if (is_last) return absl::OkStatus();
      positions_[deal_.begins[lane + 1] - 1] = end;
      begin = int64_t{end} + 1;
    }
    return absl::OkStatus();
  }

  // No more than positions that are worth coding so can have, and kSharedPad.
  std::vector<uint16_t> ReadWords(BitReader stream) const {
    const int64_t most_bits = RiceCoder().MaxBits(static_cast<int64_t>(positions_.size()), decoding_.history->size());
    std::vector<uint16_t> words(std::min<int64_t>(stream.remaining(), most_bits) / kSharedWordBits + kSharedPad);
    constexpr int kAtOnce = 3;  // of a window
    const auto end = words.end() - kSharedPad;
    for (auto word = words.begin(); word < end; word += kAtOnce) {
      uint64_t window = stream.Window();
      for (int i = 0; i < kAtOnce; ++i, window >>= kSharedWordBits) word[i] = static_cast<uint16_t>(window);
      stream.Skip(kAtOnce * kSharedWordBits);
    }
    std::fill(end, words.end(), uint16_t{0});
    return words;
  }

  // Reads the last position of each lane, which is what its state has left over.
  absl::Status LastPositions() {
    for (int lane = 0; lane < deal_.lanes; ++lane) {
      const SharedLane& state = lanes_[lane];
      const int64_t last = state.run.begin + state.at + int64_t{state.state - kSharedLowest};
      if (last >= state.end) return PositionPastTheEnd(kName);
      positions_[deal_.begins[lane] + deal_.count(lane) - 1] = static_cast<uint32_t>(last);
    }
    return absl::OkStatus();
  }

  const LaneDeal deal_;
  const absl::Span<uint32_t> positions_;
  SharedDecoding decoding_;
  std::array<uint8_t, kSharedScale> windows_;
  std::array<SharedLane, kSharedMostLanes> lanes_;
};

// Reads what was decoded all at once: lanes come to their ends together.
class SharedReader final : public PositionReader {
 public:
  SharedReader(std::vector<uint32_t> positions, BitReader after)
      : positions_(std::make_shared<const std::vector<uint32_t>>(std::move(positions))), after_(after) {}

  std::unique_ptr<PositionReader> Clone() const override { return std::make_unique<SharedReader>(*this); }

  absl::Status Next(absl::Span<uint32_t> positions) override {
    std::copy_n(positions_->begin() + next_, positions.size(), positions.begin());
    next_ += static_cast<int64_t>(positions.size());
    return absl::OkStatus();
  }

  absl::StatusOr<BitReader> Finish() override { return after_; }

 private:
  std::shared_ptr<const std::vector<uint32_t>> positions_;
  int64_t next_ = 0;
  BitReader after_;
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
  const LaneDeal& deal = encoded->deal;
  for (int lane = 0; lane < deal.lanes; ++lane) {
    const int length = BitLength(encoded->states[lane]);
    writer->Put(length - kSharedWordBits - 1, kStateLengthBits);
    writer->Put(encoded->states[lane] - (1u << (length - 1)), length - 1);
    if (lane + 1 < deal.lanes) writer->Put(positions[deal.begins[lane + 1] - 1], deal.end_bits);
  }
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
  std::vector<uint32_t> positions(count);
  const absl::StatusOr<BitReader> after = Decoder(*history_, side_, *model, absl::MakeSpan(positions)).Decode(rest);
  if (!after.ok()) return after.status();
  return std::unique_ptr<PositionReader>(std::make_unique<SharedReader>(std::move(positions), *after));
}

}  // namespace terse
