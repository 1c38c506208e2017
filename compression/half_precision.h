// Two float formats of 16 bits as codecs: `fp16` is IEEE 754 binary16 (5 exponent and 10 fraction bits, 2^-24 to
// 65504), `bf16` is bfloat16 (8 and 7 bits, the range of float32). Both as in Micikevicius et al., "Mixed Precision
// Training" (ICLR 2018), and Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training" (2019), without loss
// scaling: feedback keeps what rounding takes.
//
// Readings: an element becomes the nearest number, ties to the even fraction, and the largest finite one beyond the
// range, never infinity. Numbers of the format itself stay as they are, -0 and denormals included. half_bits.h has the
// conversions.
//
// No settings. Deterministic, biased (rounding to nearest), not lossless. Cost: 16 * n bits a tensor of n elements.
//
// Example: {1, 0.1, 70000} in fp16 is {1, 0.0999755859375, 65504}.
#ifndef TERSE_COMPRESSION_HALF_PRECISION_H_
#define TERSE_COMPRESSION_HALF_PRECISION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantize_kernels.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format numbers 0x18 (fp16) and 0x19 (bf16).
class HalfPrecisionCodec : public QuantizedCodec {
 public:
  // Never fail; `spec`'s parameters are those of other codecs.
  static absl::StatusOr<std::unique_ptr<const Codec>> CreateFp16(const CodecSpec& spec, const Layout& layout);
  static absl::StatusOr<std::unique_ptr<const Codec>> CreateBf16(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return format_.name; }
  CodecTraits traits() const override;

 private:
  struct HalfFormat {
    int number;  // first byte of the message
    const char* name;
    // The kernels of its conversions.
    decltype(QuantizeKernels::to_fp16) QuantizeKernels::*from_floats;
    decltype(QuantizeKernels::from_fp16) QuantizeKernels::*to_floats;
  };

  HalfPrecisionCodec(const Layout& layout, const HalfFormat& format);

  // A symbol is the bits of the number.
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;

  const HalfFormat format_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_HALF_PRECISION_H_
