// Deep Gradient Compression: Lin, Han, Mao, Wang, Dally, "Deep Gradient Compression: Reducing the Communication
// Bandwidth for Distributed Training" (ICLR 2018). Each tensor sends its largest magnitudes with their values. This
// file is only the message; the memory and the schedule that make the method work at a density of 0.001 are in
// momentum_correction.h.
//
// Readings, where the paper leaves a choice:
// - A density a tensor: EncodeOptions::rates (the warm-up), or spec.density without. It may change from message to
//   message, so every count is written in full.
// - k = max(1, density * n rounded to nearest, halves up) exactly, ties to the lowest index; the paper estimates its
//   threshold from a sample. Zeros are never sent.
//
// Settings: density, positions; momentum, clip and warmup_rounds belong to memory and schedule. Biased; lossless only
// where k = n or the other elements are zero; deterministic. NaN and infinity are refused with tensor and index, and so
// is a rate that is not above 0 and at most 1.
// Cost a tensor of n elements: the bit length of n, 32 bits an element, and the position coder's bits.
#ifndef TERSE_COMPRESSION_DGC_H_
#define TERSE_COMPRESSION_DGC_H_

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
class DgcCodec : public SparseCodec {
 public:
  // INVALID_ARGUMENT for a density out of range or unknown positions.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "dgc"; }
  CodecTraits traits() const override { return {}; }

 private:
  DgcCodec(const Layout& layout, SparseFormat format, double density)
      : SparseCodec(layout, std::move(format)), density_(density) {}

  bool AddsResidual() const override { return true; }
  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;

  const double density_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_DGC_H_
