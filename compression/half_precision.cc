#include "compression/half_precision.h"

#include <algorithm>

#include "absl/memory/memory.h"

namespace terse {
namespace {

constexpr uint32_t kFp16Infinity = 0x7c00;
constexpr uint32_t kBf16Infinity = 0x7f80;
constexpr uint32_t kSignBit = 0x8000;

// Returns bits / 2^count, rounded to nearest, ties to even. 1 <= count <= 31, bits < 2^31.
uint32_t ShiftRounded(uint32_t bits, int count) {
  return (bits + (uint32_t{1} << (count - 1)) - 1 + (bits >> count & 1)) >> count;
}

// The difference of the exponents' biases, 127 - 15, in its place in a float32.
constexpr uint32_t kFp16Rebias = 112u << 23;

template <uint16_t (*Convert)(float)>
void FromFloats(absl::Span<const float> values, uint32_t* symbols) {
  for (size_t i = 0; i < values.size(); ++i) symbols[i] = Convert(values[i]);
}

// Whether all are bits of finite numbers.
template <float (*Convert)(uint16_t), uint32_t kInfinity>
bool ToFloats(absl::Span<const uint32_t> symbols, float* values) {
  uint32_t bad = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    bad |= static_cast<uint32_t>((symbols[i] & (kSignBit - 1)) >= kInfinity);
    values[i] = Convert(static_cast<uint16_t>(symbols[i]));
  }
  return bad == 0;
}

}  // namespace

uint16_t ToFp16(float value) {
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = MagnitudeBits(bits);
  uint32_t half = 0;
  if (magnitude >= kFp16Rebias + (1u << 23)) {
    half = std::min(ShiftRounded(magnitude - kFp16Rebias, 13), kFp16Infinity - 1);
  } else if (const uint32_t exponent = magnitude >> 23; exponent >= 102) {
    // A number of units of 2^-24. Below 2^-25 there is none.
    half = ShiftRounded((magnitude & 0x7fffff) | 0x800000, static_cast<int>(126 - exponent));
  }
  return static_cast<uint16_t>(half | (bits >> 16 & kSignBit));
}

float FromFp16(uint16_t bits) {
  const uint32_t sign = (bits & kSignBit) << 16;
  const uint32_t magnitude = bits & (kSignBit - 1);
  if (magnitude >= 0x400) return FloatFromBits(sign | ((magnitude << 13) + kFp16Rebias));
  return FloatFromBits(sign | FloatBits(static_cast<float>(magnitude) * 0x1.0p-24f));
}

uint16_t ToBf16(float value) {
  const uint32_t bits = FloatBits(value);
  const uint32_t magnitude = std::min(ShiftRounded(MagnitudeBits(bits), 16), kBf16Infinity - 1);
  return static_cast<uint16_t>(magnitude | (bits >> 16 & kSignBit));
}

float FromBf16(uint16_t bits) { return FloatFromBits(uint32_t{bits} << 16); }

absl::StatusOr<std::unique_ptr<const Codec>> HalfPrecisionCodec::CreateFp16(const CodecSpec& /*spec*/,
                                                                            const Layout& layout) {
  return absl::WrapUnique<const Codec>(
      new HalfPrecisionCodec(layout, {0x18, "fp16", FromFloats<ToFp16>, ToFloats<FromFp16, kFp16Infinity>}));
}

absl::StatusOr<std::unique_ptr<const Codec>> HalfPrecisionCodec::CreateBf16(const CodecSpec& /*spec*/,
                                                                            const Layout& layout) {
  return absl::WrapUnique<const Codec>(
      new HalfPrecisionCodec(layout, {0x19, "bf16", FromFloats<ToBf16>, ToFloats<FromBf16, kBf16Infinity>}));
}

HalfPrecisionCodec::HalfPrecisionCodec(const Layout& layout, const HalfFormat& format)
    : QuantizedCodec(layout, {format.number}, NewFixedWidthCoder(16)), format_(format) {}

CodecTraits HalfPrecisionCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/false, /*stochastic=*/false, /*carries_all=*/true};
}

void HalfPrecisionCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                                  uint32_t* symbols) const {
  format_.from_floats(values, symbols);
}

bool HalfPrecisionCodec::Dequantize(const Header& /*header*/, absl::Span<const uint32_t> symbols, float* values) const {
  return format_.to_floats(symbols, values);
}

}  // namespace terse
