// The sign of every element, and nothing else: Bernstein, Wang, Azizzadenesheli, Anandkumar, "signSGD: Compressed
// Optimisation for Non-Convex Problems" (ICML 2018). `signsgd` is Algorithm 1, where sgn(g) travels; `signum` is
// Algorithm 2, where the sign of the momentum m = beta * m + (1 - beta) * g does: the same message, but its default
// feedback is "momentum" (momentum_feedback.h).
//
// Readings: sgn(0), of either sign, is +1, so one bit is enough. There is no scale: decoded values are +1 and -1, and
// the learning rate of the server optimizer makes a step of them. That of ef_signsgd.h has one.
//
// No settings. Deterministic, biased, not lossless. Cost: n bits a tensor of n elements, without padding between
// tensors.
//
// Example: {0.5, -3, 0} is decoded as {1, -1, 1}.
#ifndef TERSE_COMPRESSION_SIGNSGD_H_
#define TERSE_COMPRESSION_SIGNSGD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format number 0x14.
class SignSgdCodec : public QuantizedCodec {
 public:
  // The codec is called spec.name, "signsgd" or "signum". Never fails.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return name_; }
  CodecTraits traits() const override;

 private:
  SignSgdCodec(const Layout& layout, const CodecSpec& spec);

  // A symbol is 1 for a negative element.
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;

  const std::string name_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SIGNSGD_H_
