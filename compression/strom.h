// Threshold sparsification: Strom, "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing" (Interspeech
// 2015), section 3. Every element of magnitude at least tau is sent as +tau or -tau; the rest of it, and all other
// elements, belong into the residual, so a large element is sent again and again until it is used up.
//
// Readings, where the paper leaves a choice:
// - One tau for all tensors: spec.threshold, rounded to float32. Both ends know it, so it does not travel.
// - Magnitude exactly tau is sent (the paper compares with >).
// - The paper packs a 31-bit index and a sign bit into a word and mentions entropy coding of the distances; here any
//   position coder and a sign bit an element.
//
// Settings: threshold, positions. Biased, not lossless, deterministic. Nothing is sent of a tensor whose elements all
// are below tau; the number of elements is not bounded otherwise. Decoded values are +-tau. NaN and infinity are
// refused with tensor and index.
// Cost a tensor of n elements: the bit length of n, one bit an element, and the position coder's bits.
//
// Example: tau = 1, {0.5, -1, 3, -0.99}: positions 1 and 2 carry -1 and 1; the residual keeps {0.5, 0, 2, -0.99}.
#ifndef TERSE_COMPRESSION_STROM_H_
#define TERSE_COMPRESSION_STROM_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class StromCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for a threshold that is not a positive, finite float32, or unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "strom"; }
  CodecTraits traits() const override { return {}; }

 private:
  using SparseCodec::SparseCodec;

  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_STROM_H_
