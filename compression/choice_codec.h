// One of several codecs for each message: a controller (coordinator/control) picks which, round by round, and the
// message says which it was. So an update that comes late, of a round with another plan, still reads.
//
// Message: 0x1a, the choice as one byte, then the chosen codec's own message. Cost: that of the chosen codec, its
// format byte and padding, and one byte.
#ifndef TERSE_COMPRESSION_CHOICE_CODEC_H_
#define TERSE_COMPRESSION_CHOICE_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's; EncodeOptions::choice names the codec that encodes. Traits are those that all of the choices
// have, and `stochastic` and `uses_latest` when one has them.
class ChoiceCodec : public Codec {
 public:
  // Makes one codec of codec_table for each entry of `choices`; the plain codec, without the two bytes, for a single
  // entry. INVALID_ARGUMENT for more than kMostCodecChoices of them or none, or from MakeCodec.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(absl::Span<const CodecSpec> choices, const Layout& layout);

  absl::string_view name() const override { return choices_[0]->name(); }
  const Layout& layout() const override { return choices_[0]->layout(); }
  CodecTraits traits() const override;
  int64_t MaxMessageBytes() const override;
  std::unique_ptr<EncodeScratch> NewScratch() const override;
  absl::StatusOr<std::string> Encode(absl::Span<const float> update, const EncodeOptions& options) const override;
  absl::StatusOr<std::string> AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                           const EncodeOptions& options) const override;
  absl::StatusOr<int64_t> CostBits(absl::Span<const float> update, const EncodeOptions& options) const override;
  bool AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const override;
  absl::StatusOr<std::unique_ptr<UpdateCursor>> Open(absl::string_view message) const override;
  absl::StatusOr<absl::optional<std::vector<int64_t>>> SentPositions(absl::string_view message) const override;
  // All choices share one history; null, so that nothing can be packed, when they group tensors in different ways.
  const Layout* PackedLayout() const override;
  absl::StatusOr<std::string> Pack(absl::string_view message, const UpdateHistory& history) const override;
  absl::StatusOr<std::string> Unpack(absl::string_view packed, const UpdateHistory& history) const override;
  absl::Status AddToHistory(absl::string_view message, UpdateHistory* history) const override;

 private:
  struct Picked {
    const Codec* codec;
    EncodeOptions options;
  };

  explicit ChoiceCodec(std::vector<std::unique_ptr<const Codec>> choices) : choices_(std::move(choices)) {}
  // The codec of options.choice, and the options for it. INVALID_ARGUMENT for a choice that does not exist.
  absl::StatusOr<Picked> Pick(const EncodeOptions& options) const;
  // The codec that the message names. INVALID_ARGUMENT when it names none.
  absl::StatusOr<const Codec*> Named(absl::string_view message) const;
  // FAILED_PRECONDITION when PackedLayout() is null.
  absl::StatusOr<const Codec*> NamedForPacking(absl::string_view message) const;

  const std::vector<std::unique_ptr<const Codec>> choices_;
};

// The choice that `message` names; 0 for a message of a single codec.
int64_t ChoiceOf(absl::string_view message);

}  // namespace terse

#endif  // TERSE_COMPRESSION_CHOICE_CODEC_H_
