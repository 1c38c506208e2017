#include "compression/low_precision.h"

#include <cmath>

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

int32_t MostLevel(int bits) { return (int32_t{1} << (bits - 1)) - 1; }

}  // namespace

float LowPrecisionDelta(float largest, int bits) {
  const int32_t most = MostLevel(bits);
  const float delta = FloatAtLeast(static_cast<double>(largest) / static_cast<double>(most));
  const bool fits = FloatBits(LowPrecisionValue(most, delta)) < kInfinityBits;
  return fits ? delta : FloatFromBits(FloatBits(delta) - 1);
}

double LowPrecisionLoss(absl::Span<const float> values, int bits) {
  const double delta = static_cast<double>(LowPrecisionDelta(LargestMagnitude(values), bits));
  if (delta == 0) return 0;
  return LaneSum(values, [delta](float value) {
    const double quotient = static_cast<double>(value) / delta;
    const double up = quotient - std::floor(quotient);
    return up * delta * ((1 - up) * delta);
  });
}

absl::StatusOr<std::unique_ptr<const Codec>> LowPrecisionCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckBits(spec, 2, 16));
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  return absl::WrapUnique<const Codec>(new LowPrecisionCodec(layout, spec));
}

LowPrecisionCodec::LowPrecisionCodec(const Layout& layout, const CodecSpec& spec)
    : QuantizedCodec(layout, {/*number=*/0x16, /*header_floats=*/1, spec.bucket},
                     NewFixedWidthCoder(static_cast<int>(spec.bits))),
      bits_(static_cast<int>(spec.bits)) {}

CodecTraits LowPrecisionCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/true, /*stochastic=*/true, /*carries_all=*/true};
}

QuantizedCodec::Header LowPrecisionCodec::Measure(absl::Span<const float> bucket) const {
  return {LowPrecisionDelta(LargestMagnitude(bucket), bits_)};
}

void LowPrecisionCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                                 uint32_t* symbols) const {
  GetQuantizeKernels().to_low_precision(values.data(), draws, static_cast<int64_t>(values.size()), header[0], bits_,
                                        symbols);
}

bool LowPrecisionCodec::GoodHeader(const Header& header) const {
  return FloatBits(header[0]) < kInfinityBits &&
         FloatBits(LowPrecisionValue(MostLevel(bits_), header[0])) < kInfinityBits;
}

bool LowPrecisionCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  return GetQuantizeKernels().from_low_precision(symbols.data(), static_cast<int64_t>(symbols.size()), header[0], bits_,
                                                 values);
}

// delta is at most the largest magnitude, whose level is therefore not 0.
bool LowPrecisionCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return (header[0] != 0) == (any != 0);
}

}  // namespace terse
