#include "compression/one_bit.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
#include "core/status.h"

namespace terse {
namespace {

// |value| if its sign bit is kNegative, else 0; without a branch. -0 counts 0 on either side.
template <bool kNegative>
double MagnitudeIf(float value) {
  const uint32_t bits = FloatBits(value);
  const uint32_t negative = 0 - (bits >> 31);
  return static_cast<double>(FloatFromBits(MagnitudeBits(bits) & (kNegative ? negative : ~negative)));
}

// Returns the mean, and 0 for no elements.
float Mean(double sum, int64_t count) { return count == 0 ? 0 : NearestFloat(sum / static_cast<double>(count)); }

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> OneBitCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  return absl::WrapUnique<const Codec>(new OneBitCodec(layout, spec));
}

OneBitCodec::OneBitCodec(const Layout& layout, const CodecSpec& spec)
    : QuantizedCodec(layout, {/*number=*/0x13, /*header_floats=*/2, spec.bucket}, NewFixedWidthCoder(1)) {}

CodecTraits OneBitCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/false, /*stochastic=*/false, /*carries_all=*/true};
}

QuantizedCodec::Header OneBitCodec::Measure(absl::Span<const float> bucket) const {
  const int64_t negative = std::count_if(bucket.begin(), bucket.end(), [](float value) { return value < 0; });
  const double above = LaneSum(bucket, [](float value) { return MagnitudeIf<false>(value); });
  const double below = LaneSum(bucket, [](float value) { return MagnitudeIf<true>(value); });
  const float upper = Mean(above, static_cast<int64_t>(bucket.size()) - negative);
  const float lower = Mean(below, negative);
  return {upper, negative == 0 ? 0 : -lower};
}

void OneBitCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                           uint32_t* symbols) const {
  for (size_t i = 0; i < values.size(); ++i) symbols[i] = values[i] < 0;
}

bool OneBitCodec::GoodHeader(const Header& header) const {
  const uint32_t lower = FloatBits(header[1]);
  const bool lower_fits = lower == 0 || (header[1] < 0 && MagnitudeBits(lower) < kInfinityBits);
  return FloatBits(header[0]) < kInfinityBits && lower_fits;
}

bool OneBitCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const float upper = header[0];
  const float lower = header[1];
  for (size_t i = 0; i < symbols.size(); ++i) values[i] = symbols[i] == 0 ? upper : lower;
  return true;
}

// A side has a value exactly when it has elements, except that the others may all be zeros.
bool OneBitCodec::GoodBucket(const Header& header, uint32_t any, uint32_t all) const {
  return (header[1] != 0) == (any == 1) && (header[0] == 0 || all == 0);
}

}  // namespace terse
