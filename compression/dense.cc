#include "compression/dense.h"

#include <algorithm>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/quantize_kernels.h"

namespace terse {

std::string DescribeElement(const Layout& layout, int64_t i) {
  const auto after = std::upper_bound(layout.tensors().begin(), layout.tensors().end(), i,
                                      [](int64_t index, const TensorSpec& tensor) { return index < tensor.offset; });
  const TensorSpec& tensor = *(after - 1);
  return absl::StrCat("tensor '", tensor.name, "', index ", i - tensor.offset);
}

void AppendFloats(absl::Span<const float> values, std::string* bytes) {
  const size_t begin = bytes->size();
  bytes->resize(begin + 4 * values.size());
  char* out = &(*bytes)[begin];
  for (size_t i = 0; i < values.size(); ++i) StoreLittle32(FloatBits(values[i]), out + 4 * i);
}

absl::Status CheckFloats(const Layout& layout, absl::string_view bytes) {
  const int64_t size = layout.size();
  if (bytes.size() != static_cast<size_t>(4 * size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes of values where the model needs ", 4 * size, "; send it whole"));
  }
  uint32_t bad = 0;
  for (int64_t i = 0; i < size; ++i) {
    bad |= static_cast<uint32_t>(MagnitudeBits(LoadLittle32(bytes.data() + 4 * i)) >= kInfinityBits);
  }
  if (bad == 0) return absl::OkStatus();
  int64_t i = 0;
  while (MagnitudeBits(FloatBits(FloatAt(bytes, i))) < kInfinityBits) ++i;
  return absl::InvalidArgumentError(
      absl::StrCat(DescribeElement(layout, i), ": the value is ", FloatAt(bytes, i), "; it must be finite"));
}

absl::StatusOr<std::unique_ptr<const Codec>> DenseCodec::Create(const CodecSpec& /*spec*/, const Layout& layout) {
  return absl::WrapUnique<const Codec>(new DenseCodec(layout));
}

DenseCodec::DenseCodec(const Layout& layout) : QuantizedCodec(layout, {/*number=*/0x01}, NewFixedWidthCoder(32)) {}

CodecTraits DenseCodec::traits() const {
  return {/*lossless=*/true, /*unbiased=*/true, /*stochastic=*/false, /*carries_all=*/true};
}

void DenseCodec::Quantize(const Header& /*header*/, absl::Span<const float> values, const uint32_t* /*draws*/,
                          uint32_t* symbols) const {
  std::memcpy(symbols, values.data(), values.size() * sizeof(float));
}

bool DenseCodec::Dequantize(const Header& /*header*/, absl::Span<const uint32_t> symbols, float* values) const {
  return GetQuantizeKernels().from_floats(symbols.data(), static_cast<int64_t>(symbols.size()), values);
}

}  // namespace terse
