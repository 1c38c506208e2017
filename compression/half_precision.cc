#include "compression/half_precision.h"

#include "absl/memory/memory.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> HalfPrecisionCodec::CreateFp16(const CodecSpec& /*spec*/,
                                                                            const Layout& layout) {
  return absl::WrapUnique<const Codec>(
      new HalfPrecisionCodec(layout, {0x18, "fp16", &QuantizeKernels::to_fp16, &QuantizeKernels::from_fp16}));
}

absl::StatusOr<std::unique_ptr<const Codec>> HalfPrecisionCodec::CreateBf16(const CodecSpec& /*spec*/,
                                                                            const Layout& layout) {
  return absl::WrapUnique<const Codec>(
      new HalfPrecisionCodec(layout, {0x19, "bf16", &QuantizeKernels::to_bf16, &QuantizeKernels::from_bf16}));
}

HalfPrecisionCodec::HalfPrecisionCodec(const Layout& layout, const HalfFormat& format)
    : QuantizedCodec(layout, {format.number}, NewFixedWidthCoder(16)), format_(format) {}

CodecTraits HalfPrecisionCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/false, /*stochastic=*/false, /*carries_all=*/true};
}

void HalfPrecisionCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                                  uint32_t* symbols) const {
  (GetQuantizeKernels().*format_.from_floats)(values.data(), static_cast<int64_t>(values.size()), symbols);
}

bool HalfPrecisionCodec::Dequantize(const Header& /*header*/, absl::Span<const uint32_t> symbols, float* values) const {
  return (GetQuantizeKernels().*format_.to_floats)(symbols.data(), static_cast<int64_t>(symbols.size()), values);
}

}  // namespace terse
