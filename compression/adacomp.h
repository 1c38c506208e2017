// AdaComp: Chen, Choi, Brand, Agrawal, Zhang, Gopalakrishnan, "AdaComp: Adaptive Residual Gradient Compression for
// Data-Parallel Distributed Training" (AAAI 2018), Algorithm 2. A tensor is cut into bins of L_T elements; with the
// accumulated update G = residue + dW and H = G + dW (a scale factor of 2 on the newest part), an element is sent when
// |H| is at least the largest |G| of its bin. All sent elements of a tensor have one magnitude, the mean over bins of
// those largest |G|. Bins with activity send more, quiet ones one element: the density adapts by itself.
//
// Readings, where the paper leaves a choice:
// - L_T is the paper's 50 for convolutional tensors, which are those with four dimensions, and 500 for all others. The
//   last bin may be shorter. Tensors merged into one group (CodecSpec::grouping) have one dimension.
// - dW is EncodeOptions::latest; without it all of the update is new, so H = 2 G.
// - An element with G = 0 has no sign and is not sent; a bin of zeros counts as 0 in the mean and sends nothing.
// - G + dW is a float32 addition, the mean adds float32 numbers in double in the order of the bins and divides by their
//   number; it is rounded to float32, but never to zero.
//
// Settings: positions. Biased, not lossless, deterministic. All elements of a constant bin are sent (they tie). NaN and
// infinity, in the update or its newest part, are refused with tensor and index; H may overflow to infinity, which is
// larger than anything; decoded values lie within the range of G.
// Cost a tensor of n elements: the bit length of n; if anything is sent, 32 bits, one bit an element, and the position
// coder's bits.
#ifndef TERSE_COMPRESSION_ADACOMP_H_
#define TERSE_COMPRESSION_ADACOMP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The paper's L_T, for convolutions and for all other tensors.
constexpr int64_t kAdaCompConvolutionBin = 50;
constexpr int64_t kAdaCompBin = 500;

// The contract is Codec's.
class AdaCompCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "adacomp"; }
  CodecTraits traits() const override;

 private:
  using SparseCodec::SparseCodec;

  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_ADACOMP_H_
