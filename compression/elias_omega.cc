#include "compression/elias_omega.h"

#include <algorithm>
#include <array>

#include "compression/elias_gamma.h"
#include "compression/tensor_codec.h"

namespace terse {
namespace {

struct CodeWord {
  uint64_t bits;  // the first one in the lowest place
  int length;     // at most 43; 44 with a sign
};

constexpr CodeWord MakeWord(uint32_t value) {
  CodeWord word = {0, 1};
  while (value > 1) {
    const int log = FloorLog2(value);
    for (int i = 0; i <= log; ++i) word.bits = word.bits << 1 | (value >> i & 1);
    word.length += log + 1;
    value = log;
  }
  return word;
}

// The words of the small values, which are nearly all that occur.
constexpr uint32_t kTableSize = 512;
constexpr std::array<CodeWord, kTableSize> MakeTable() {
  std::array<CodeWord, kTableSize> table = {};
  for (uint32_t value = 1; value < kTableSize; ++value) table[value] = MakeWord(value);
  return table;
}
constexpr std::array<CodeWord, kTableSize> kWords = MakeTable();

CodeWord WordOf(uint32_t value) { return value < kTableSize ? kWords[value] : MakeWord(value); }

void PutWord(const CodeWord& word, BitWriter* writer) {
  if (word.length <= 32) return writer->Put(word.bits, word.length);
  writer->Put(word.bits & 0xffffffffu, 32);
  writer->Put(word.bits >> 32, word.length - 32);
}

// The code word that a stream begins with whose next kPeekBits bits are given; length 0 where the word is longer than
// these bits.
constexpr int kPeekBits = 8;
struct ShortWord {
  uint8_t value;
  uint8_t length;
};
constexpr std::array<ShortWord, 1 << kPeekBits> MakeShortWords() {
  std::array<ShortWord, 1 << kPeekBits> table = {};
  for (uint32_t value = 1; kWords[value].length <= kPeekBits; ++value) {
    const CodeWord word = kWords[value];
    for (uint32_t rest = 0; rest < 1u << (kPeekBits - word.length); ++rest) {
      table[rest << word.length | word.bits] = {static_cast<uint8_t>(value), static_cast<uint8_t>(word.length)};
    }
  }
  return table;
}
constexpr std::array<ShortWord, 1 << kPeekBits> kShortWords = MakeShortWords();

// The bits of both codes of a bucket, without the flag.
class Costs {
 public:
  void Add(uint32_t symbol) {
    if (symbol == 0) {
      ++dense_;
      ++distance_;
      return;
    }
    const uint32_t level = symbol >> 1;
    sparse_ += EliasOmegaBits(distance_) + 1 + EliasOmegaBits(level);
    dense_ += EliasOmegaBits(level + 1) + 1;
    distance_ = 1;
  }

  // The lengths in bits of the two codes; valid after the last symbol.
  int64_t sparse() const { return sparse_ + (distance_ == 1 ? 0 : EliasOmegaBits(distance_)); }
  int64_t dense() const { return dense_; }
  bool IsDense() const { return dense() < sparse(); }

 private:
  int64_t sparse_ = 0;
  int64_t dense_ = 0;
  uint32_t distance_ = 1;  // from the last nonzero symbol, or from -1, to the next one to add
};

Costs CostsOf(absl::Span<const uint32_t> symbols) {
  Costs costs;
  for (uint32_t symbol : symbols) costs.Add(symbol);
  return costs;
}

class EliasOmegaReader : public SymbolReader {
 public:
  explicit EliasOmegaReader(uint32_t max_level) : max_level_(max_level) {}

  std::unique_ptr<SymbolReader> Clone() const override { return std::make_unique<EliasOmegaReader>(*this); }

  absl::Status Start(int64_t count, BitReader* stream) override {
    costs_ = Costs();
    left_ = static_cast<uint32_t>(count);
    uint32_t dense = 0;
    if (!stream->Get(1, &dense)) return TruncatedIn("its symbols");
    dense_ = dense == 1;
    return dense_ ? absl::OkStatus() : GetZeros(stream);
  }

  absl::Status Next(absl::Span<uint32_t> symbols, BitReader* stream) override {
    for (uint32_t& symbol : symbols) {
      const absl::Status status = dense_ ? NextDense(stream, &symbol) : NextSparse(stream, &symbol);
      if (!status.ok()) return status;
      costs_.Add(symbol);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (costs_.IsDense() == dense_) return absl::OkStatus();
    return absl::InvalidArgumentError("a bucket in the longer one of its two codes; the encoder takes the shorter");
  }

 private:
  static absl::Status Broken() {
    return absl::InvalidArgumentError("its symbols end early, or a level or a distance is too large");
  }

  // Reads the distance to the next nonzero symbol, or to the bucket's end.
  absl::Status GetZeros(BitReader* stream) {
    if (!GetEliasOmega(left_ + 1, stream, &zeros_)) return Broken();
    --zeros_;
    return absl::OkStatus();
  }

  absl::Status NextSparse(BitReader* stream, uint32_t* symbol) {
    --left_;
    if (zeros_ > 0) {
      --zeros_;
      *symbol = 0;
      return absl::OkStatus();
    }
    uint32_t sign = 0;
    uint32_t level = 0;
    if (!stream->Get(1, &sign) || !GetEliasOmega(max_level_, stream, &level)) return Broken();
    *symbol = 2 * level + sign;
    return left_ == 0 ? absl::OkStatus() : GetZeros(stream);
  }

  absl::Status NextDense(BitReader* stream, uint32_t* symbol) {
    uint32_t sign = 0;
    uint32_t successor = 0;
    if (!GetEliasOmega(max_level_ + 1, stream, &successor)) return Broken();
    if (successor > 1 && !stream->Get(1, &sign)) return Broken();
    *symbol = 2 * (successor - 1) + sign;
    return absl::OkStatus();
  }

  const uint32_t max_level_;
  bool dense_ = false;
  uint32_t left_ = 0;   // sparse: symbols of the bucket that are not decoded
  uint32_t zeros_ = 0;  // sparse: zeros that stand before the next nonzero one, or the end
  Costs costs_;
};

class EliasOmegaCoder : public SymbolCoder {
 public:
  explicit EliasOmegaCoder(uint32_t max_level) : max_level_(max_level) {}

  bool fixed_length() const override { return false; }
  int64_t MaxBits(int64_t count) const override { return 1 + count * (EliasOmegaBits(max_level_ + 1) + 1); }

  int64_t Bits(absl::Span<const uint32_t> symbols) const override {
    const Costs costs = CostsOf(symbols);
    return 1 + std::min(costs.sparse(), costs.dense());
  }

  void Put(absl::Span<const uint32_t> symbols, BitWriter* writer) const override {
    const bool dense = CostsOf(symbols).IsDense();
    writer->Put(dense, 1);
    dense ? PutDense(symbols, writer) : PutSparse(symbols, writer);
  }

  std::unique_ptr<SymbolReader> NewReader() const override { return std::make_unique<EliasOmegaReader>(max_level_); }

 private:
  static void PutSparse(absl::Span<const uint32_t> symbols, BitWriter* writer) {
    uint32_t distance = 1;
    for (uint32_t symbol : symbols) {
      if (symbol == 0) {
        ++distance;
        continue;
      }
      PutEliasOmega(distance, writer);
      const CodeWord level = WordOf(symbol >> 1);
      PutWord({level.bits << 1 | (symbol & 1), level.length + 1}, writer);
      distance = 1;
    }
    if (distance > 1) PutEliasOmega(distance, writer);
  }

  static void PutDense(absl::Span<const uint32_t> symbols, BitWriter* writer) {
    for (uint32_t symbol : symbols) {
      const CodeWord successor = WordOf((symbol >> 1) + 1);
      PutWord({successor.bits | uint64_t{symbol & 1} << successor.length, successor.length + (symbol != 0)}, writer);
    }
  }

  const uint32_t max_level_;
};

}  // namespace

int EliasOmegaBits(uint32_t value) { return WordOf(value).length; }

void PutEliasOmega(uint32_t value, BitWriter* writer) { PutWord(WordOf(value), writer); }

bool GetEliasOmega(uint32_t most, BitReader* stream, uint32_t* value) {
  BitReader ahead = *stream;
  uint32_t bits = 0;
  if (ahead.Get(kPeekBits, &bits) && kShortWords[bits].length > 0) {
    *value = kShortWords[bits].value;
    stream->Skip(kShortWords[bits].length);
    return *value <= most;
  }
  uint64_t number = 1;
  while (number <= most) {
    uint32_t more = 0;
    if (!stream->Get(1, &more)) return false;
    *value = static_cast<uint32_t>(number);
    if (more == 0) return true;
    const int count = static_cast<int>(number);
    if (number > 31 || !stream->Get(count, &bits)) return false;
    number = 1;
    for (int i = 0; i < count; ++i, bits >>= 1) number = number << 1 | (bits & 1);
  }
  return false;
}

std::unique_ptr<const SymbolCoder> NewEliasOmegaCoder(uint32_t max_level) {
  return std::make_unique<EliasOmegaCoder>(max_level);
}

}  // namespace terse
