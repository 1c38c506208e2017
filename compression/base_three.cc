#include "compression/base_three.h"

#include <algorithm>
#include <array>

#include "compression/bit_fields.h"
#include "compression/tensor_codec.h"

namespace terse {
namespace {

constexpr int kDigits = 5;
constexpr int kFields = 243;

constexpr std::array<std::array<uint8_t, kDigits>, kFields> MakeTable() {
  std::array<std::array<uint8_t, kDigits>, kFields> table = {};
  for (int field = 0; field < kFields; ++field) {
    int rest = field;
    for (int i = 0; i < kDigits; ++i, rest /= 3) table[field][i] = static_cast<uint8_t>(rest % 3);
  }
  return table;
}
constexpr std::array<std::array<uint8_t, kDigits>, kFields> kDigitsOf = MakeTable();

// The field of so many digits, the first of them in the lowest place.
inline uint32_t FieldOf(const uint32_t* digits, int count) {
  uint32_t field = 0;
  for (int i = count; i > 0; --i) field = 3 * field + digits[i - 1];
  return field;
}

class BaseThreeReader : public SymbolReader {
 public:
  std::unique_ptr<SymbolReader> Clone() const override { return std::make_unique<BaseThreeReader>(); }

  absl::Status Next(absl::Span<uint32_t> symbols, BitReader* stream) override {
    const int64_t size = static_cast<int64_t>(symbols.size());
    const int64_t count = (size + kDigits - 1) / kDigits;
    if (stream->remaining() < static_cast<uint64_t>(8 * count)) return TruncatedIn("its symbols");
    uint32_t fields[kSymbolRun / kDigits];
    GetFields(8, absl::MakeSpan(fields, count), stream);
    const uint32_t largest = *std::max_element(fields, fields + count);
    if (largest >= kFields) return absl::InvalidArgumentError("five digits above 22222 in base three");
    for (int64_t i = 0; i < size / kDigits; ++i) {
      for (int64_t j = 0; j < kDigits; ++j) symbols[i * kDigits + j] = kDigitsOf[fields[i]][j];
    }
    for (int64_t j = 0; j < count * kDigits - size / kDigits * kDigits; ++j) {
      const uint32_t digit = kDigitsOf[fields[count - 1]][j];
      if (j < size % kDigits) {
        symbols[size / kDigits * kDigits + j] = digit;
      } else if (digit != 0) {
        return absl::InvalidArgumentError("a digit behind the last one is not 0");
      }
    }
    return absl::OkStatus();
  }
};

class BaseThreeCoder : public SymbolCoder {
 public:
  bool fixed_length() const override { return true; }
  int64_t MaxBits(int64_t count) const override { return 8 * ((count + kDigits - 1) / kDigits); }

  void Put(absl::Span<const uint32_t> symbols, BitWriter* writer) const override {
    uint32_t fields[kSymbolRun / kDigits];
    for (size_t first = 0; first < symbols.size(); first += kSymbolRun) {
      const absl::Span<const uint32_t> run = symbols.subspan(first, kSymbolRun);
      const size_t whole = run.size() / kDigits;
      for (size_t i = 0; i < whole; ++i) fields[i] = FieldOf(&run[i * kDigits], kDigits);
      const int rest = static_cast<int>(run.size() % kDigits);
      if (rest > 0) fields[whole] = FieldOf(&run[whole * kDigits], rest);
      PutFields(absl::MakeSpan(fields, whole + (rest > 0)), 8, writer);
    }
  }

  std::unique_ptr<SymbolReader> NewReader() const override { return std::make_unique<BaseThreeReader>(); }
};

}  // namespace

std::unique_ptr<const SymbolCoder> NewBaseThreeCoder() { return std::make_unique<BaseThreeCoder>(); }

}  // namespace terse
