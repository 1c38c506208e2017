#include "compression/qsgd.h"

#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/elias_omega.h"
#include "compression/exact_math.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr int kSimpleNumber = 0x10;
constexpr int kEliasNumber = 0x11;

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> QsgdCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckBits(spec, 1, 8));
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  const int bits = static_cast<int>(spec.bits);
  if (spec.code == "simple") {
    const QuantizedFormat format = {kSimpleNumber, /*header_floats=*/1, spec.bucket};
    return absl::WrapUnique<const Codec>(new QsgdCodec(layout, format, bits, NewFixedWidthCoder(1 + bits)));
  }
  if (spec.code == "elias") {
    const QuantizedFormat format = {kEliasNumber, /*header_floats=*/1, spec.bucket};
    return absl::WrapUnique<const Codec>(new QsgdCodec(layout, format, bits, NewEliasOmegaCoder((1 << bits) - 1)));
  }
  return absl::InvalidArgumentError(absl::StrCat("codec.code is '", spec.code, "'; qsgd knows simple and elias"));
}

QsgdCodec::QsgdCodec(const Layout& layout, const QuantizedFormat& format, int bits,
                     std::unique_ptr<const SymbolCoder> coder)
    : QuantizedCodec(layout, format, std::move(coder)), levels_((1 << bits) - 1) {}

CodecTraits QsgdCodec::traits() const {
  return {/*lossless=*/false, /*unbiased=*/true, /*stochastic=*/true, /*carries_all=*/true};
}

QuantizedCodec::Header QsgdCodec::Measure(absl::Span<const float> bucket) const {
  // A square of a float32 is exact in double, and rounding is monotone: the root is not below the largest magnitude.
  return {FloatAtLeast(std::sqrt(SumOfSquares(bucket)))};
}

void QsgdCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                         uint32_t* symbols) const {
  const double norm = header[0] == 0 ? 1 : header[0];  // all values are 0 then
  GetQuantizeKernels().to_levels(values.data(), draws, static_cast<int64_t>(values.size()), norm, levels_, symbols);
}

bool QsgdCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const double unit = static_cast<double>(header[0]) / levels_;
  return GetQuantizeKernels().from_levels(symbols.data(), static_cast<int64_t>(symbols.size()), unit, values);
}

bool QsgdCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return header[0] != 0 || any == 0;
}

}  // namespace terse
