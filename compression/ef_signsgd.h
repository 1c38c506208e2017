// EF-signSGD: Karimireddy, Rebjock, Stich, Jaggi, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes"
// (ICML 2019), Algorithm 1. With p = gamma * g + e, the step and the residual of earlier ones, the client sends
//
//   Delta = (||p||_1 / d) * sgn(p)
//
// and keeps e = p - Delta, which is the feedback "error_feedback". d is the number of elements that share the scale:
// those of a tensor, as in the paper's experiments, or of a bucket.
//
// Readings: sgn(0), of either sign, is +1, as in signsgd.h. The 1-norm is taken in double (LaneSum of exact_math.h),
// the quotient rounded to float32. Where that is 0 (all zeros, or a few denormals), everything decodes to 0 and all
// signs are +.
//
// Settings: bucket. Deterministic, biased, not lossless. Cost: 32 + n bits a bucket of n elements.
//
// Example: {0.5, -3, 0, 0.5}: the scale is 1, and {1, -1, 1, 1} is decoded.
#ifndef TERSE_COMPRESSION_EF_SIGNSGD_H_
#define TERSE_COMPRESSION_EF_SIGNSGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format number 0x15.
class EfSignSgdCodec : public QuantizedCodec {
 public:
  // INVALID_ARGUMENT for a negative bucket.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "ef_signsgd"; }
  CodecTraits traits() const override;

 private:
  EfSignSgdCodec(const Layout& layout, const CodecSpec& spec);

  // The header is the scale; a symbol is 1 for a negative element.
  Header Measure(absl::Span<const float> bucket) const override;
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
  bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_EF_SIGNSGD_H_
