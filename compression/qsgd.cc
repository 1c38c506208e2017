#include "compression/qsgd.h"

#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/counter_random.h"
#include "compression/elias_omega.h"
#include "compression/exact_math.h"
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
  const double squares =
      LaneSum(bucket, [](float value) { return static_cast<double>(value) * static_cast<double>(value); });
  return {FloatAtLeast(std::sqrt(squares))};
}

void QsgdCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                         uint32_t* symbols) const {
  const double norm = header[0] == 0 ? 1 : header[0];  // all values are 0 then
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = FloatBits(values[i]);
    const double ratio = static_cast<double>(FloatFromBits(MagnitudeBits(bits))) * levels_ / norm;
    const int32_t floor = static_cast<int32_t>(ratio);
    const uint32_t level = floor + (UniformDouble(draws[i]) < ratio - floor);
    symbols[i] = 2 * level + (bits >> 31 & static_cast<uint32_t>(level != 0));
  }
}

bool QsgdCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const double unit = static_cast<double>(header[0]) / levels_;
  uint32_t bad = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const float magnitude = static_cast<float>(unit * static_cast<int32_t>(symbols[i] >> 1));
    values[i] = FloatFromBits(FloatBits(magnitude) | symbols[i] << 31);
    bad |= static_cast<uint32_t>(symbols[i] == 1);
  }
  return bad == 0;
}

bool QsgdCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return header[0] != 0 || any == 0;
}

}  // namespace terse
