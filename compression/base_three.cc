#include "compression/base_three.h"

#include <algorithm>
#include <array>

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

class BaseThreeReader : public SymbolReader {
 public:
  std::unique_ptr<SymbolReader> Clone() const override { return std::make_unique<BaseThreeReader>(); }

  absl::Status Next(absl::Span<uint32_t> symbols, BitReader* stream) override {
    for (size_t first = 0; first < symbols.size(); first += kDigits) {
      uint32_t field = 0;
      if (!stream->Get(8, &field)) return TruncatedIn("its symbols");
      if (field >= kFields) return absl::InvalidArgumentError("five digits above 22222 in base three");
      const size_t count = std::min<size_t>(kDigits, symbols.size() - first);
      for (size_t i = 0; i < count; ++i) symbols[first + i] = kDigitsOf[field][i];
      for (size_t i = count; i < kDigits; ++i) {
        if (kDigitsOf[field][i] != 0) return absl::InvalidArgumentError("a digit behind the last one is not 0");
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
    for (size_t first = 0; first < symbols.size(); first += kDigits) {
      uint32_t field = 0;
      for (size_t i = std::min(first + kDigits, symbols.size()); i > first; --i) field = 3 * field + symbols[i - 1];
      writer->Put(field, 8);
    }
  }

  std::unique_ptr<SymbolReader> NewReader() const override { return std::make_unique<BaseThreeReader>(); }
};

}  // namespace

std::unique_ptr<const SymbolCoder> NewBaseThreeCoder() { return std::make_unique<BaseThreeCoder>(); }

}  // namespace terse
