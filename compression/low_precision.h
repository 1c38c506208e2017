// The low-precision representation (delta, b) of Yu, Wu, Huang, "Double Quantization for Communication-Efficient
// Distributed Optimization" (NeurIPS 2019), section 3. The numbers that it represents are
//
//   dom(delta, b) = {-2^(b-1) * delta, ..., -delta, 0, delta, ..., (2^(b-1) - 1) * delta}
//
// and Q_(delta,b)(x), for x in [z, z + delta] with z and z + delta in the domain, is z + delta with probability (x - z)
// / delta and else z; a number outside the domain's hull becomes the closest one in it. E[Q(x)] = x inside the hull,
// and E(Q(x) - x)^2 <= delta^2 / 4.
//
// The codec takes delta = ||x||_inf / (2^(b-1) - 1) of each tensor (Algorithm 1, step 11).
#ifndef TERSE_COMPRESSION_LOW_PRECISION_H_
#define TERSE_COMPRESSION_LOW_PRECISION_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// level * delta, rounded to float32. Finite if 2^(b-1) * delta is.
inline float LowPrecisionValue(int32_t level, float delta) {
  return static_cast<float>(static_cast<double>(level) * static_cast<double>(delta));
}

// delta of ||x||_inf = `largest` >= 0: the smallest float32 for which the hull of dom(delta, b) holds +-largest. Only
// where its own largest number would be beyond the float32 range is delta one float32 smaller. 0 for 0.
float LowPrecisionDelta(float largest, int bits);

// E||Q_(delta,b)(x) - x||^2, the left side of conditions (2) and (4), for the codec's delta of a bucket `values`: the
// sum of (x - z)(z + delta - x), up to the rounding of doubles; the same bits on every machine.
double LowPrecisionLoss(absl::Span<const float> values, int bits);

// The codec. Its contract is Codec's; format number 0x16.
//
// Settings: bits = b from 2 to 16, bucket (0 as in the paper: a delta a tensor). Stochastic, unbiased, not lossless. A
// level travels in two's complement; -2^(b-1) never occurs: it could be drawn only where delta is the smaller one at
// the end of the float32 range, and is -2^(b-1) + 1 then. A tensor of zeros has delta 0. Cost: 32 + b * n bits a bucket
// of n elements.
//
// Example: {1, -7, 0.5}, b = 4: delta = 1, the levels are 1, -7 and, with equal chances, 0 or 1.
class LowPrecisionCodec : public QuantizedCodec {
 public:
  // INVALID_ARGUMENT for bits outside 2..16 or a negative bucket.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "low_precision"; }
  CodecTraits traits() const override;

 private:
  LowPrecisionCodec(const Layout& layout, const CodecSpec& spec);

  // The header is delta; a symbol is a level modulo 2^b.
  Header Measure(absl::Span<const float> bucket) const override;
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool GoodHeader(const Header& header) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
  bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const override;

  const int bits_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_LOW_PRECISION_H_
