// The compressor of SparseLoCo: Sarfi, Therien, Lidin, Belilovsky, "Communication Efficient LLM Pre-training with
// SparseLoCo" (2025, arXiv 2508.15706), with which Covenant-72B was trained (Lidin et al. 2026, arXiv 2603.08163). Of
// every chunk of a tensor the k elements of largest magnitude are sent, quantized to a few bits; what they lose, and
// the other elements, belong into the residual, which decays:
//
//   e <- beta * e + delta;   sent = Q(Top-k(e));   e <- e - sent;   weights <- weights + alpha * mean of sent
//
// Error feedback with decay = beta is this memory, and the server optimizer sgd the outer step. The published settings
// are bucket = 4096, density = 0.015625 (64 of 4096), bits = 2 and decay = 0.95, with positions = "chunk12" for the
// published packing (chunk12.h).
//
// Readings, where the paper leaves a choice:
// - A chunk is `bucket` consecutive elements of the tensor, the last one possibly shorter; the whole tensor for 0. The
//   authors' code cuts matrices into squares of 64 x 64 elements, where both sides are divisible by 64.
// - Each chunk sends max(1, density * n rounded to nearest, halves up) of its n elements, ties to the lowest index.
//   Zeros are never selected: a chunk with fewer other elements sends those.
// - Q is the quantizer of the authors' code. It divides the sent values of a tensor into L = 2^bits levels. With their
//   mean m and standard deviation s (n - 1 in the denominator), value x has the level floor((x - m) / (6 s / L) + L / 2
//   + 1/2), at least 0 and at most L - 1, and L / 2 where s is 0. A level decodes to the mean of its values. Sums and
//   quotients are those of doubles; the mean of a level is rounded to float32.
// - The authors' code rounds halves to the even level, and sends m and the means of all levels: 160 bits a tensor with
//   2 bits. Here the means of the levels that occur travel, 32 bits each.
//
// With 2 bits the levels are not symmetric: the largest elements lie on both sides of zero, about one standard
// deviation from it, so that level 3 has nearly all positive values, level 1 most negative ones, level 0 the negative
// ones beyond 2.25 deviations, and level 2 next to none. And where a tensor sends two values of opposite sign and equal
// magnitude, both fall into level 2, which decodes to 0. Nothing is lost: they stay in the residual.
//
// Settings: density, bits (1 to 8), bucket, positions. Biased, not lossless, deterministic. NaN and infinity are
// refused with tensor and index. Cost a tensor: the count if it is not the planned one, bits an element, 32 bits a
// level that occurs, and the position coder's bits.
//
// Example: {1, -2, 0.5, 8, 0, 3, 0.25, -1}, bucket 4, density 0.5, bits 2: each chunk sends two elements, -2 and 8, and
// 3 and -1. Their mean is 2, s = sqrt(62 / 3) = 4.55, a level is 6.82 wide, and the levels are 1, 3, 2, 2: -2 and 8
// are sent as they are, 3 and -1 both as 1.
#ifndef TERSE_COMPRESSION_SPARSELOCO_H_
#define TERSE_COMPRESSION_SPARSELOCO_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class SparseLoCoCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for density, bits or bucket out of range, or unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "sparseloco"; }
  CodecTraits traits() const override { return {}; }

 private:
  SparseLoCoCodec(const Layout& layout, SparseFormat format, const CodecSpec& spec)
      : SparseCodec(layout, std::move(format)), density_(spec.density), chunk_(spec.bucket) {}

  bool AddsResidual() const override { return true; }
  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;
  // Appends the largest elements of the chunk that begins at `begin` to `part` and `values`.
  absl::Status SelectFromChunk(const TensorInput& input, int64_t begin, int64_t size, TopSelector* selector,
                               SparsePart* part, std::vector<float>* values) const;

  const double density_;
  const int64_t chunk_;  // 0: the whole tensor
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SPARSELOCO_H_
