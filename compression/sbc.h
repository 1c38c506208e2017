// Sparse Binary Compression: Sattler, Wiedemann, Mueller, Samek, "Sparse Binary Compression: Towards Distributed Deep
// Learning with minimal Communication" (2018), Algorithm 2. Only the k = p * n largest entries of one sign of each
// tensor are sent, all with the same value, their mean. Its relative `stc`, Sparse Ternary Compression (Sattler et al.,
// "Robust and Communication-Efficient Federated Learning from Non-IID Data", 2019, Algorithm 1), sends the k largest of
// both signs as plus or minus the mean of their magnitudes, for one more bit an entry; `sbc_or_stc` takes, tensor by
// tensor, the one that keeps more energy for its bits.
//
// Readings, where the papers leave a choice:
// - k is max(1, p * n rounded to nearest, halves up); exactly k entries, ties to the lowest index.
// - The side with the larger mean over k entries wins, positive on a tie. A side with fewer than k entries counts the
//   missing ones as zeros there, and then sends only what it has, with the mean of that.
// - The mean adds magnitudes in double as top_select.h says; it is rounded to float32, or to bfloat16 if the run says
// so.
// - A tensor of zeros sends nothing.
// - The energy that k equal entries of mean m keep is k * m^2; per bit means divided by the tensor's whole cost in
// bits.
//
// Biased, not lossless, deterministic. Cost a tensor: the count if it is not k, the scale, one sign bit an entry if
// signed, and the position coder's bits.
//
// Example: {0.5, -4, 3, 0, 2.5, 1}, p = 0.3: k = 2. sbc: means 2.75 and 2 (of 4 and 0), so positions 2 and 4
// carry 2.75. stc: positions 1 and 2 carry -3.5 and 3.5.
#ifndef TERSE_COMPRESSION_SBC_H_
#define TERSE_COMPRESSION_SBC_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "compression/sparse_codec.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class SbcCodec : public SparseCodec {
 public:
  // The codecs sbc, stc and sbc_or_stc. INVALID_ARGUMENT for a setting out of range.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);
  static absl::StatusOr<std::unique_ptr<const Codec>> CreateStc(const CodecSpec& spec, const Layout& layout);
  static absl::StatusOr<std::unique_ptr<const Codec>> CreateEither(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override;
  CodecTraits traits() const override { return {}; }

 private:
  using SparseCodec::SparseCodec;

  static absl::StatusOr<std::unique_ptr<const Codec>> CreateWith(int format_number, SparseValues values,
                                                                 const CodecSpec& spec, const Layout& layout);

  bool AddsResidual() const override { return true; }
  absl::Status Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const override;
  // Makes the selections that the codec sends or chooses from. Returns the index of a number that is not finite.
  absl::optional<int64_t> FindEntries(const SelectInput& numbers, int64_t count, TopSelector* selector) const;
  // Whether the selector's largest elements are sent, and not those of the larger tail.
  bool TakesTwoSided(const TopSelector& selector, int64_t size) const;
  static const TopEntries& LargerTail(const TopSelector& selector);
  // The mean magnitude as it travels, of entries that are not empty.
  float Mean(const TopEntries& entries) const;
  // Fill *part with the elements to send.
  void OneSided(const TopSelector& selector, SparsePart* part) const;
  void TwoSided(const TopSelector& selector, SparsePart* part) const;
  // Returns the squared magnitude that is sent per bit, of entries that take `sign_bits` each beside their positions.
  double EnergyPerBit(const TopEntries& entries, int64_t sign_bits, int64_t size) const;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SBC_H_
