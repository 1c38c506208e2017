#include "compression/one_bit.h"

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
#include "compression/fetch_ahead.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

// Elements a step: they stay in the first-level cache for both sums and the count.
constexpr size_t kStep = 4096;
static_assert(kStep % kPartialSums == 0, "a step begins with the first partial sum");

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
  double above[kPartialSums] = {};
  double below[kPartialSums] = {};
  int64_t negative = 0;
  for (size_t at = 0; at < bucket.size(); at += kStep) {
    const absl::Span<const float> step = bucket.subspan(at, kStep);
    FetchAheadToRead(step.data(), static_cast<int64_t>(sizeof(float) * step.size()));
    negative += GetQuantizeKernels().add_by_sign(step.data(), static_cast<int64_t>(step.size()), above, below);
  }
  const float upper = Mean(TotalOfLanes(above), static_cast<int64_t>(bucket.size()) - negative);
  const float lower = Mean(TotalOfLanes(below), negative);
  return {upper, negative == 0 ? 0 : -lower};
}

void OneBitCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                           uint32_t* symbols) const {
  GetQuantizeKernels().signs(values.data(), static_cast<int64_t>(values.size()), symbols);
}

bool OneBitCodec::GoodHeader(const Header& header) const {
  const uint32_t lower = FloatBits(header[1]);
  const bool lower_fits = lower == 0 || (header[1] < 0 && MagnitudeBits(lower) < kInfinityBits);
  return FloatBits(header[0]) < kInfinityBits && lower_fits;
}

bool OneBitCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const float table[3] = {header[0], header[1], header[1]};
  GetQuantizeKernels().from_table(symbols.data(), static_cast<int64_t>(symbols.size()), table, values);
  return true;
}

// A side has a value exactly when it has elements, except that the others may all be zeros.
bool OneBitCodec::GoodBucket(const Header& header, uint32_t any, uint32_t all) const {
  return (header[1] != 0) == (any == 1) && (header[0] == 0 || all == 0);
}

}  // namespace terse
