#include "compression/ef_signsgd.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> EfSignSgdCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  return absl::WrapUnique<const Codec>(new EfSignSgdCodec(layout, spec));
}

EfSignSgdCodec::EfSignSgdCodec(const Layout& layout, const CodecSpec& spec)
    : QuantizedCodec(layout, {/*number=*/0x15, /*header_floats=*/1, spec.bucket}, NewFixedWidthCoder(1)) {}

CodecTraits EfSignSgdCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/false, /*stochastic=*/false, /*carries_all=*/true};
}

QuantizedCodec::Header EfSignSgdCodec::Measure(absl::Span<const float> bucket) const {
  return {NearestFloat(SumOfMagnitudes(bucket) / static_cast<double>(bucket.size()))};
}

void EfSignSgdCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* /*draws*/,
                              uint32_t* symbols) const {
  if (header[0] == 0) {
    std::fill_n(symbols, values.size(), 0);
    return;
  }
  GetQuantizeKernels().signs(values.data(), static_cast<int64_t>(values.size()), symbols);
}

bool EfSignSgdCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const float table[3] = {header[0], -header[0], -header[0]};
  GetQuantizeKernels().from_table(symbols.data(), static_cast<int64_t>(symbols.size()), table, values);
  return true;
}

bool EfSignSgdCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return header[0] != 0 || any == 0;
}

}  // namespace terse
