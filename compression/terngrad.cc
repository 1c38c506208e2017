#include "compression/terngrad.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/base_three.h"
#include "compression/exact_math.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> TernGradCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  if (!(spec.clip >= 0 && std::isfinite(spec.clip))) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.clip is ", spec.clip, "; terngrad needs a number of standard deviations, or 0 for none"));
  }
  return absl::WrapUnique<const Codec>(new TernGradCodec(layout, spec));
}

TernGradCodec::TernGradCodec(const Layout& layout, const CodecSpec& spec)
    : QuantizedCodec(layout, {/*number=*/0x12, /*header_floats=*/1, spec.bucket}, NewBaseThreeCoder()),
      clip_(spec.clip) {}

CodecTraits TernGradCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/clip_ == 0, /*stochastic=*/true, /*carries_all=*/true};
}

QuantizedCodec::Header TernGradCodec::Measure(absl::Span<const float> bucket) const {
  const float largest = LargestMagnitude(bucket);
  if (clip_ == 0 || largest == 0) return {largest};
  const double limit = clip_ * std::sqrt(SumOfSquares(bucket) / static_cast<double>(bucket.size()));
  const float cut = NearestFloat(limit);
  return {std::min(largest, cut == 0 ? FloatFromBits(1) : cut)};
}

void TernGradCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                             uint32_t* symbols) const {
  const double scale = header[0] == 0 ? 1 : header[0];  // all values are 0 then
  GetQuantizeKernels().to_ternary(values.data(), draws, static_cast<int64_t>(values.size()), scale, symbols);
}

bool TernGradCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const float table[3] = {0, header[0], -header[0]};
  GetQuantizeKernels().from_table(symbols.data(), static_cast<int64_t>(symbols.size()), table, values);
  return true;
}

// The element of largest magnitude is always kept.
bool TernGradCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return (header[0] != 0) == (any != 0);
}

}  // namespace terse
