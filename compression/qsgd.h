// QSGD: Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD: Communication-Efficient SGD via Gradient Quantization and
// Encoding" (NIPS 2017), section 3.1, in the reading of Zrouga et al., "Stochastic Gradient Quantization: Saving
// Bandwidth in Distributed Learning", section II. For a vector v != 0 and s levels,
//
//   Q_s(v_i) = ||v||_2 * sgn(v_i) * xi_i(v, s)
//
// where xi_i is (l + 1) / s with probability |v_i| / ||v||_2 * s - l and else l / s, with the l that puts |v_i| /
// ||v||_2 into [l / s, (l + 1) / s]. Then E[Q_s(v)] = v and E||Q_s(v) - v||^2 <= min(n / s^2, sqrt(n) / s) * ||v||^2
// (Lemma 3.1).
//
// Two codes carry the same levels:
//   simple  a sign bit and q bits of level an element, so s = 2^q - 1: exactly 32 + n + q * n bits a bucket of n
//           elements (the report's count; its q = log2(s) leaves out that levels are 0..s).
//   elias   QSGD's own: section 3.2, with elias_omega.h; 32 + 1 bits and the shorter of the sparse and the dense code.
//
// Readings: the norm is that of the bucket, taken in double (LaneSum of exact_math.h, one square root) and rounded up
// to float32, so that no ratio exceeds 1; beyond the float32 range it is the largest finite float, which scales as well
// (any scale of at least the largest magnitude is unbiased). A bucket of zeros has norm 0 and levels 0. An element of
// level 0 has no sign.
//
// Settings: bits = q from 1 to 8, code, bucket. Stochastic and unbiased (up to the 2^-32 that a draw resolves and the
// rounding of decoded values to float32, which shows only where norm / s is denormal), not lossless. Decoded values are
// sign * float(norm / s * level), both operations in double: never above the norm, so always finite.
//
// Example: v = {3, -4}, q = 1: norm 5, s = 1; 3 becomes 5 in six of ten encodings and else 0, -4 becomes -5 in eight.
#ifndef TERSE_COMPRESSION_QSGD_H_
#define TERSE_COMPRESSION_QSGD_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/quantized_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format numbers 0x10 (simple) and 0x11 (elias).
class QsgdCodec : public QuantizedCodec {
 public:
  // INVALID_ARGUMENT for bits outside 1..8, a negative bucket or an unknown code.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "qsgd"; }
  CodecTraits traits() const override;

 private:
  QsgdCodec(const Layout& layout, const QuantizedFormat& format, int bits, std::unique_ptr<const SymbolCoder> coder);

  // A symbol is 2 * level, plus 1 for a negative element.
  Header Measure(absl::Span<const float> bucket) const override;
  void Quantize(const Header& header, absl::Span<const float> values, const uint32_t* draws,
                uint32_t* symbols) const override;
  bool Dequantize(const Header& header, absl::Span<const uint32_t> symbols, float* values) const override;
  bool GoodBucket(const Header& header, uint32_t any, uint32_t all) const override;

  const double levels_;  // s
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_QSGD_H_
