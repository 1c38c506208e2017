#include "compression/symbol_coder.h"

#include "compression/bit_fields.h"
#include "compression/tensor_codec.h"

namespace terse {
namespace {

class FixedWidthReader : public SymbolReader {
 public:
  explicit FixedWidthReader(int width) : width_(width) {}

  std::unique_ptr<SymbolReader> Clone() const override { return std::make_unique<FixedWidthReader>(width_); }

  absl::Status Next(absl::Span<uint32_t> symbols, BitReader* stream) override {
    if (stream->remaining() < symbols.size() * width_) return TruncatedIn("its symbols");
    GetFields(width_, symbols, stream);
    return absl::OkStatus();
  }

 private:
  const int width_;
};

class FixedWidthCoder : public SymbolCoder {
 public:
  explicit FixedWidthCoder(int width) : width_(width) {}

  bool fixed_length() const override { return true; }
  int64_t MaxBits(int64_t count) const override { return count * width_; }

  void Put(absl::Span<const uint32_t> symbols, BitWriter* writer) const override { PutFields(symbols, width_, writer); }

  std::unique_ptr<SymbolReader> NewReader() const override { return std::make_unique<FixedWidthReader>(width_); }

 private:
  const int width_;
};

}  // namespace

std::unique_ptr<const SymbolCoder> NewFixedWidthCoder(int width) { return std::make_unique<FixedWidthCoder>(width); }

}  // namespace terse
