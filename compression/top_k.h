// Gradient Dropping: Aji, Heafield, "Sparse Communication for Distributed Gradient Descent" (EMNLP 2017), Algorithm 1.
// Each tensor sends the share R (spec.density here; the paper drops 99%) of its elements that has the largest
// magnitudes, with their values as they are; the dropped elements belong into the residual.
//
// Readings, where the paper leaves a choice:
// - The threshold is each tensor's own (the paper's "local" one) and exact, not estimated from a sample: exactly k =
//   max(1, density * n rounded to nearest, halves up) elements, ties to the lowest index.
// - Zeros are never sent: a tensor with fewer than k non-zero elements sends those.
// - The paper sends 32 bits for a value and 16 for a position: positions "fixed16". Any other coder is shorter.
//
// Settings: density, positions. Biased; lossless only where k = n or the other elements are zero; deterministic. What
// is sent is sent exactly, denormals and the largest numbers included. NaN and infinity are refused with tensor and
// index.
// Cost a tensor: the count if it is not k, 32 bits an element, and the position coder's bits.
//
// Example: {0.5, -4, 3, 0, 2.5, 1}, density 0.3: k = 2, positions 1 and 2 carry -4 and 3.
#ifndef TERSE_COMPRESSION_TOP_K_H_
#define TERSE_COMPRESSION_TOP_K_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class TopKCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for a density out of range or unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "top_k"; }
  CodecTraits traits() const override { return {}; }

 private:
  using SparseCodec::SparseCodec;

  bool AddsResidual() const override { return true; }
  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_TOP_K_H_
