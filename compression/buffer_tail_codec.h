// Model buffers in a message. A buffer, which a run averages beside the trainable parameters, such as the running
// statistics of BatchNorm (Ioffe, Szegedy, 2015), is a state and no sum of small steps: sparsified or rounded at random
// it would stop being a mean or a variance, and it is a small part of a model. So parameters go through the codec of
// the run, and the change of every buffer travels whole beside them.
//
// Message: the codec's own for the layout of the parameters alone, then the float32 of every buffer element in the
// layout's order, least significant byte first, at no alignment. The layout knows how many those are, so nothing says
// where they begin. Cost: that of the parameters, and 32 bits a buffer element.
#ifndef TERSE_COMPRESSION_BUFFER_TAIL_CODEC_H_
#define TERSE_COMPRESSION_BUFFER_TAIL_CODEC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/layout.h"

namespace terse {

// The contract is Codec's. Traits are those of the codec of the parameters. The sums of AddAndEncode reach over the
// buffers, and EncodeOptions::rates has a number for every tensor of the layout, those of buffers having no effect. A
// cursor yields a buffer's elements as runs of consecutive positions behind those of the parameters.
class BufferTailCodec : public Codec {
 public:
  // `layout` has buffers; `parameters` is a codec for layout.WithoutBuffers().
  BufferTailCodec(const Layout& layout, std::unique_ptr<const Codec> parameters)
      : layout_(layout), parameters_(std::move(parameters)) {}

  absl::string_view name() const override { return parameters_->name(); }
  const Layout& layout() const override { return layout_; }
  CodecTraits traits() const override { return parameters_->traits(); }
  int64_t MaxMessageBytes() const override { return parameters_->MaxMessageBytes() + TailBytes(); }
  std::unique_ptr<EncodeScratch> NewScratch() const override { return parameters_->NewScratch(); }
  absl::StatusOr<std::string> Encode(absl::Span<const float> update, const EncodeOptions& options) const override;
  absl::StatusOr<std::string> AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                           const EncodeOptions& options) const override;
  absl::StatusOr<int64_t> CostBits(absl::Span<const float> update, const EncodeOptions& options) const override;
  bool AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const override {
    return parameters_->AddEncoded(scratch, sign, accumulator.subspan(0, layout_.parameters()));
  }
  // INVALID_ARGUMENT also for a message that is too short to hold the buffers.
  absl::StatusOr<std::unique_ptr<UpdateCursor>> Open(absl::string_view message) const override;
  // Buffers stay as they are.
  const Layout* PackedLayout() const override { return parameters_->PackedLayout(); }
  absl::StatusOr<std::string> Pack(absl::string_view message, const UpdateHistory& history) const override;
  absl::StatusOr<std::string> Unpack(absl::string_view packed, const UpdateHistory& history) const override;
  absl::Status AddToHistory(absl::string_view message, UpdateHistory* history) const override;

 private:
  class Cursor;

  int64_t TailBytes() const { return 4 * (layout_.size() - layout_.parameters()); }
  // Returns how many bytes of the message are the codec's own. INVALID_ARGUMENT when the buffers are not behind them.
  absl::StatusOr<size_t> ParameterBytes(absl::string_view message) const;
  // Returns the part of `options` that concerns the parameters. INVALID_ARGUMENT when it, or the update, does not fit
  // the layout.
  absl::StatusOr<EncodeOptions> ForParameters(size_t update, const EncodeOptions& options) const;
  // INVALID_ARGUMENT for the first element of a buffer that is NaN or infinite.
  absl::Status CheckBuffers(absl::Span<const float> update) const;
  // The message of the parameters with that of the buffers behind it.
  absl::StatusOr<std::string> WithBuffers(absl::StatusOr<std::string> message, absl::Span<const float> update) const;

  const Layout layout_;
  const std::unique_ptr<const Codec> parameters_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_BUFFER_TAIL_CODEC_H_
