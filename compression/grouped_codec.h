// Coding several tensors as one: `grouping` of a run. Small tensors pay for a scale and a count each; as one group they
// share them. SBC's experiments code per tensor; `global` is one group of everything, `merge_small` one group of all
// tensors below a size. Wraps any codec: it gives the inner codec a layout of groups and translates positions.
//
// Message: the inner codec's, for the layout of groups. merge_small puts the group of small tensors first, its members
// in the layout's order, then the other tensors in theirs.
#ifndef TERSE_COMPRESSION_GROUPED_CODEC_H_
#define TERSE_COMPRESSION_GROUPED_CODEC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "core/run_config.h"

namespace terse {

// The contract is Codec's.
class GroupedCodec : public Codec {
 public:
  using Factory = absl::StatusOr<std::unique_ptr<const Codec>> (*)(const CodecSpec& spec, const Layout& layout);

  // Returns the codec that `create` makes for the groups of spec.grouping, or the plain codec where there is nothing to
  // group. INVALID_ARGUMENT for an unknown grouping, or from `create`.
  static absl::StatusOr<std::unique_ptr<const Codec>> Create(const CodecSpec& spec, const Layout& layout,
                                                             Factory create);

  absl::string_view name() const override { return inner_->name(); }
  const Layout& layout() const override { return layout_; }
  CodecTraits traits() const override { return inner_->traits(); }
  int64_t MaxMessageBytes() const override { return inner_->MaxMessageBytes(); }
  std::unique_ptr<EncodeScratch> NewScratch() const override { return inner_->NewScratch(); }
  absl::StatusOr<std::string> Encode(absl::Span<const float> update, const EncodeOptions& options) const override;
  absl::StatusOr<std::string> AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                           const EncodeOptions& options) const override;
  absl::StatusOr<int64_t> CostBits(absl::Span<const float> update, const EncodeOptions& options) const override;
  bool AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const override {
    return !reorders() && inner_->AddEncoded(scratch, sign, accumulator);
  }
  absl::StatusOr<std::unique_ptr<UpdateCursor>> Open(absl::string_view message) const override;
  // Messages are the inner codec's, and so are the histories, which are those of its groups.
  const Layout* PackedLayout() const override { return inner_->PackedLayout(); }
  absl::StatusOr<std::string> Pack(absl::string_view message, const UpdateHistory& history) const override {
    return inner_->Pack(message, history);
  }
  absl::StatusOr<std::string> Unpack(absl::string_view packed, const UpdateHistory& history) const override {
    return inner_->Unpack(packed, history);
  }
  absl::Status AddToHistory(absl::string_view message, UpdateHistory* history) const override {
    return inner_->AddToHistory(message, history);
  }

 private:
  class Cursor;

  GroupedCodec(const Layout& layout, std::vector<int64_t> inner_offsets, int64_t merged_size,
               std::unique_ptr<const Codec> inner)
      : layout_(layout),
        inner_offsets_(std::move(inner_offsets)),
        merged_size_(merged_size),
        inner_(std::move(inner)) {}

  // Whether elements change their places, so that updates must be gathered.
  bool reorders() const { return merged_size_ < layout_.size(); }
  std::vector<float> Gather(absl::Span<const float> flat) const;
  // The rates of the groups: that of the merged one is the mean of its members', weighted by their sizes.
  // INVALID_ARGUMENT when there is not one for each tensor of the model.
  absl::StatusOr<std::vector<double>> GroupRates(absl::Span<const double> rates) const;
  // Calls `call(codec, update, options)` with the inner codec and the update and options of its groups.
  template <typename Result, typename Call>
  Result WithGroups(absl::Span<const float> update, const EncodeOptions& options, Call call) const;
  // The inner codec's error, with the tensor and index of the whole model where a number is not finite.
  absl::Status InModel(const absl::Status& status, absl::Span<const float> update) const;

  const Layout layout_;
  const std::vector<int64_t> inner_offsets_;  // of each tensor in the inner layout
  const int64_t merged_size_;                 // elements of the merged group, which is the inner layout's first tensor
  const std::unique_ptr<const Codec> inner_;
};

}  // namespace terse

#endif  // TERSE_COMPRESSION_GROUPED_CODEC_H_
