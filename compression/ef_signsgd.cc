#include "compression/ef_signsgd.h"

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
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
  const double sum =
      LaneSum(bucket, [](float value) { return static_cast<double>(FloatFromBits(MagnitudeBits(FloatBits(value)))); });
  return {NearestFloat(sum / static_cast<double>(bucket.size()))};
}

void EfSignSgdCodec::Quantize(const Header& header, absl::Span<const float> values, const uint32_t* /*draws*/,
                              uint32_t* symbols) const {
  const bool scaled = header[0] != 0;
  for (size_t i = 0; i < values.size(); ++i) symbols[i] = scaled & (values[i] < 0);
}

bool EfSignSgdCodec::Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const {
  const float scale = header[0];
  for (size_t i = 0; i < symbols.size(); ++i) values[i] = symbols[i] == 0 ? scale : -scale;
  return true;
}

bool EfSignSgdCodec::GoodBucket(const Header& header, uint32_t any, uint32_t /*all*/) const {
  return header[0] != 0 || any == 0;
}

}  // namespace terse
