#include "compression/signsgd.h"

#include "absl/memory/memory.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> SignSgdCodec::Create(const CodecSpec& spec, const Layout& layout) {
  return absl::WrapUnique<const Codec>(new SignSgdCodec(layout, spec));
}

SignSgdCodec::SignSgdCodec(const Layout& layout, const CodecSpec& spec)
    : QuantizedCodec(layout, {/*number=*/0x14}, NewFixedWidthCoder(1)), name_(spec.name) {}

CodecTraits SignSgdCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/false, /*stochastic=*/false, /*carries_all=*/true};
}

void SignSgdCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                            uint32_t* symbols) const {
  for (size_t i = 0; i < values.size(); ++i) symbols[i] = values[i] < 0;
}

bool SignSgdCodec::Dequantize(const Header& /*header*/, absl::Span<const uint32_t> symbols, float* values) const {
  for (size_t i = 0; i < symbols.size(); ++i) values[i] = symbols[i] == 0 ? 1.0f : -1.0f;
  return true;
}

}  // namespace terse
