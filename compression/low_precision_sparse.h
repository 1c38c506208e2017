// The sparsification of Sparse-AsyLPG: Yu, Wu, Huang, "Double Quantization for Communication-Efficient Distributed
// Optimization" (NeurIPS 2019), section 4.2, equation (3) with the optimal probabilities of Lemma 2: element i is kept
// with p_i = |a_i| * phi / ||a||_1 and then sent as a_i / p_i, for a budget phi <= ||a||_1 / ||a||_inf of expected
// elements. No unbiased choice with that budget has less variance: E ||b||^2 = ||a||_1^2 / phi.
//
// Every a_i / p_i is +-||a||_1 / phi, so one scale a tensor, a sign bit and a coded position an element reproduce b
// exactly, where the paper quantizes b to b bits a value and spends log2(d) on a position.
//
// Readings, where the paper leaves a choice:
// - phi = min(density * n, ||a||_1 / ||a||_inf): the paper's own budget, the largest allowed, unless spec.density asks
//   for less. density = 1 never does.
// - So the scale is S = max(||a||_inf, ||a||_1 / (density * n)), and p_i = |a_i| / S. ||a||_1 is LaneSum of
//   exact_math.h, density * n and the quotient are those of doubles, S is rounded to float32, to the largest one
//   instead of infinity. With that S p_i is exact, so rounding costs no bias.
// - Element i is kept when u * S < |a_i| in double, u = draw i of the tensor's stream as UniformDouble: p_i up to
//   2^-32.
//
// Settings: density, positions. Unbiased (up to 2^-32 of the scale), not lossless, stochastic. Zeros are never sent; of
// a constant tensor, and of one with one element, everything is sent, exactly, where density allows it. Decoded values
// are +-S. NaN and infinity are refused with tensor and index.
// Cost a tensor of n elements: the bit length of n; if anything is sent, 32 bits, one bit an element, and the position
// coder's bits.
#ifndef TERSE_COMPRESSION_LOW_PRECISION_SPARSE_H_
#define TERSE_COMPRESSION_LOW_PRECISION_SPARSE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class LowPrecisionSparseCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for a density out of range or unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "low_precision_sparse"; }
  CodecTraits traits() const override;

 private:
  LowPrecisionSparseCodec(const Layout& layout, SparseFormat format, double density)
      : SparseCodec(layout, std::move(format)), density_(density) {}

  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;

  const double density_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_LOW_PRECISION_SPARSE_H_
