#include "compression/signsgd.h"

#include "absl/memory/memory.h"
#include "compression/quantize_kernels.h"

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
  GetQuantizeKernels().signs(values.data(), static_cast<int64_t>(values.size()), symbols);
}

bool SignSgdCodec::Dequantize(const Header& /*header*/, absl::Span<const uint32_t> symbols, float* values) const {
  const float table[3] = {1, -1, -1};
  GetQuantizeKernels().from_table(symbols.data(), static_cast<int64_t>(symbols.size()), table, values);
  return true;
}

}  // namespace terse
