// TernGrad: Wen, Xu, Yan, Wu, Wang, Chen, Li, "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep
// Learning" (NIPS 2017), section 3, with its "layer-wise ternarizing", a scale a tensor:
//
//   g~ = s * sgn(g) o b,  s = max_i |g_i|,  P(b_i = 1 | g) = |g_i| / s
//
// so E[g~] = g. With its "gradient clipping" every |g_i| above c * sigma is first cut to c * sigma; the paper
// takes c = 2.5.
//
// Readings: sigma is the deviation from 0, sqrt(sum g_i^2 / n), because the paper has gradients about Gaussian with
// mean 0; a deviation from the measured mean would cut tensors of one element, or of equal ones, to nothing. It is
// taken in double (LaneSum of exact_math.h), c * sigma is rounded to float32, never to 0. A tensor of zeros has s = 0.
//
// Settings: clip = c >= 0 (0: no clipping), bucket (0 as in the paper; sigma is the bucket's too). Stochastic; unbiased
// (up to the 2^-32 that a draw resolves) without clipping, biased with it; not lossless. Cost: 32 + 8 * ceil(n / 5)
// bits a bucket of n elements. Decoded values are 0 and +- s.
//
// Example: {3, -4, 0}: s = 4; 3 becomes 4 in three of four encodings and else 0, -4 stays, and so does 0.
#ifndef TERSE_COMPRESSION_TERNGRAD_H_
#define TERSE_COMPRESSION_TERNGRAD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format number 0x12.
class TernGradCodec : public QuantizedCodec {
 public:
  // INVALID_ARGUMENT for a clip that is negative or not finite, or a negative bucket.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "terngrad"; }
  CodecTraits traits() const override;

 private:
  TernGradCodec(const Layout& layout, const CodecSpec& spec);

  // The header is s; a symbol is 0, or 1 for s, or 2 for -s.
  Header Measure(absl::Span<const float> bucket) const override;
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
  bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const override;

  const double clip_;  // c, or 0
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_TERNGRAD_H_
