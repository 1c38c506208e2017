// Sparse Binary Compression: Sattler, Wiedemann, Mueller, Samek, "Sparse Binary Compression: Towards Distributed Deep
// Learning with minimal Communication" (2018), Algorithms 2 to 4. Of each tensor only the k = p * n largest entries of
// one sign are sent, all with the same value, their mean; their positions are Rice coded.
//
// Readings, where the paper leaves a choice:
// - k is max(1, p * n rounded to nearest, halves up); exactly k entries, ties to the lowest index.
// - The side with the larger mean over k entries wins, positive on a tie. A side with fewer than k entries counts the
//   missing ones as zeros there, and then sends only what it has, with the mean of that.
// - The mean adds magnitudes in double in index order; it is rounded to float32, or to bfloat16 if the run says so.
// - An all-zero tensor sends nothing.
//
// Example: {0.5, -4, 3, 0, 2.5, 1}, p = 0.3: k = 2, means 2.75 and 2 (of 4 and 0), so positions 2 and 4 carry 2.75.
#ifndef TERSE_COMPRESSION_SBC_H_
#define TERSE_COMPRESSION_SBC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "compression/bit_stream.h"
#include "compression/codec.h"
#include "compression/rice.h"
#include "core/layout.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's. Format numbers 2 (float32 means) and 3 (bfloat16 means) of compression/FORMAT.md.
class SbcCodec : public Codec {
 public:
  // INVALID_ARGUMENT unless 0 < spec.density <= 1 and spec.mean_precision is "fp32" or "bf16".
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout);

  absl::string_view name() const override { return "sbc"; }
  const Layout& layout() const override { return layout_; }
  int64_t MaxMessageBytes() const override { return max_message_bytes_; }
  absl::StatusOr<std::string> Encode(absl::Span<const float> update) const override;
  absl::Status Validate(absl::string_view message) const override;
  absl::Status AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const override;
  absl::StatusOr<absl::optional<std::vector<uint32_t>>> SentPositions(absl::string_view message) const override;

 private:
  // What a message says about one tensor, besides the positions.
  struct TensorPart {
    int64_t count = 0;  // entries sent
    float value = 0;    // of each; unused when there are none
    int parameter = 0;  // of the Rice code
  };
  struct Header {
    std::vector<TensorPart> parts;  // one a tensor
    BitReader remainders;
    BitReader quotients;
  };

  SbcCodec(const CodecSpec& spec, const Layout& layout);

  int mean_bits() const { return bf16_ ? 16 : 32; }
  int format_number() const { return bf16_ ? 3 : 2; }
  float RoundMean(double mean) const;
  void WriteHeader(absl::Span<const TensorPart> parts, BitWriter* writer) const;
  absl::Status ReadPart(int64_t tensor, bool as_planned, BitReader* reader, TensorPart* part) const;
  absl::StatusOr<Header> ReadHeader(absl::string_view message) const;
  // Decodes the whole message, calling `visit(positions, value)` with runs of increasing flat positions.
  template <typename Visit>
  absl::Status ForEachRun(absl::string_view message, Visit visit) const;

  const Layout layout_;
  const bool bf16_;
  std::vector<int64_t> planned_;  // k of each tensor
  int64_t max_message_bytes_ = 0;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_SBC_H_
