#include "compression/grouped_codec.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/bit_stream.h"
#include "compression/tensor_codec.h"
#include "core/status.h"

namespace terse {
namespace {

struct Groups {
  std::vector<Layout::Entry> entries;  // of the inner layout
  std::vector<int64_t> inner_offsets;  // of each tensor
  int64_t merged_size = 0;
};

// The tensors below `merge_below` elements as one group, in front of the others. A group name that no tensor has.
Groups Merge(const Layout& layout, int64_t merge_below) {
  Groups groups;
  std::string name = "merged";
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.size < merge_below) groups.merged_size += tensor.size;
    if (tensor.name.size() >= name.size()) name = absl::StrCat("merged_", std::string(tensor.name.size(), '_'));
  }
  groups.entries.push_back({name, {groups.merged_size}});
  int64_t merged = 0;
  int64_t other = groups.merged_size;
  for (const TensorSpec& tensor : layout.tensors()) {
    const bool small = tensor.size < merge_below;
    int64_t& next = small ? merged : other;
    groups.inner_offsets.push_back(next);
    next += tensor.size;
    if (!small) groups.entries.push_back({tensor.name, tensor.shape});
  }
  return groups;
}

int64_t SmallTensors(const Layout& layout, int64_t merge_below) {
  return std::count_if(layout.tensors().begin(), layout.tensors().end(),
                       [merge_below](const TensorSpec& tensor) { return tensor.size < merge_below; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> GroupedCodec::Create(const CodecSpec& spec, const Layout& layout,
                                                                  Factory create) {
  int64_t merge_below = 0;
  if (spec.grouping == "merge_small") {
    merge_below = spec.merge_below;
  } else if (spec.grouping == "global") {
    merge_below = layout.size() + 1;
  } else if (spec.grouping != "per_tensor") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.grouping is '", spec.grouping, "'; known groupings are per_tensor, merge_small, global"));
  }
  if (SmallTensors(layout, merge_below) < 2) return create(spec, layout);
  Groups groups = Merge(layout, merge_below);
  if (groups.merged_size > Layout::kMostTensorElements) {
    return absl::InvalidArgumentError(absl::StrCat("codec.grouping = '", spec.grouping, "' would make one tensor of ",
                                                   groups.merged_size, " elements, and a tensor has at most ",
                                                   Layout::kMostTensorElements, "; use 'per_tensor'"));
  }
  TERSE_ASSIGN_OR_RETURN(const Layout inner_layout, Layout::Create(groups.entries));
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<const Codec> inner, create(spec, inner_layout));
  return absl::WrapUnique<const Codec>(
      new GroupedCodec(layout, std::move(groups.inner_offsets), groups.merged_size, std::move(inner)));
}

std::vector<float> GroupedCodec::Gather(absl::Span<const float> flat) const {
  std::vector<float> inner(flat.size());
  if (flat.size() != static_cast<size_t>(layout_.size())) return inner;  // empty, or the inner codec says what is wrong
  for (size_t t = 0; t < inner_offsets_.size(); ++t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    std::copy_n(flat.begin() + tensor.offset, tensor.size, inner.begin() + inner_offsets_[t]);
  }
  return inner;
}

absl::Status GroupedCodec::InModel(const absl::Status& status, absl::Span<const float> update) const {
  if (status.ok()) return status;
  for (const TensorSpec& tensor : layout_.tensors()) {
    for (int64_t i = 0; i < tensor.size && tensor.offset + i < static_cast<int64_t>(update.size()); ++i) {
      const float value = update[tensor.offset + i];
      if (MagnitudeBits(FloatBits(value)) >= kInfinityBits) return NotFiniteError(tensor, i, value);
    }
  }
  return status;
}

absl::StatusOr<std::vector<double>> GroupedCodec::GroupRates(absl::Span<const double> rates) const {
  if (rates.empty()) return std::vector<double>();
  if (rates.size() != inner_offsets_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", rates.size(), " rates for ", inner_offsets_.size(), " tensors"));
  }
  std::vector<double> groups(1, 0.0);
  for (size_t t = 0; t < rates.size(); ++t) {
    if (inner_offsets_[t] < merged_size_) {
      const double share = static_cast<double>(layout_.tensors()[t].size) / static_cast<double>(merged_size_);
      groups[0] += rates[t] * share;
    } else {
      groups.push_back(rates[t]);
    }
  }
  return groups;
}

template <typename Result, typename Call>
Result GroupedCodec::WithGroups(absl::Span<const float> update, const EncodeOptions& options, Call call) const {
  TERSE_ASSIGN_OR_RETURN(const std::vector<double> rates, GroupRates(options.rates));
  Result result;
  if (reorders()) {
    const std::vector<float> latest = Gather(options.latest);
    result = call(Gather(update), EncodeOptions{options.key, latest, rates, options.scratch});
  } else {
    result = call(update, EncodeOptions{options.key, options.latest, rates, options.scratch});
  }
  if (!result.ok()) return InModel(result.status(), update);
  return result;
}

absl::StatusOr<std::string> GroupedCodec::Encode(absl::Span<const float> update, const EncodeOptions& options) const {
  return WithGroups<absl::StatusOr<std::string>>(
      update, options,
      [this](absl::Span<const float> groups, const EncodeOptions& with) { return inner_->Encode(groups, with); });
}

absl::StatusOr<std::string> GroupedCodec::AddAndEncode(absl::Span<const float> residual, absl::Span<float> delta,
                                                       const EncodeOptions& options) const {
  if (residual.size() != delta.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the residual has ", residual.size(), " elements, the delta ", delta.size()));
  }
  if (!reorders()) {
    return WithGroups<absl::StatusOr<std::string>>(delta, options,
                                                   [&](absl::Span<const float>, const EncodeOptions& with) {
                                                     return inner_->AddAndEncode(residual, delta, with);
                                                   });
  }
  for (size_t i = 0; i < delta.size(); ++i) delta[i] += residual[i];
  return Encode(delta, options);
}

absl::StatusOr<int64_t> GroupedCodec::CostBits(absl::Span<const float> update, const EncodeOptions& options) const {
  return WithGroups<absl::StatusOr<int64_t>>(
      update, options,
      [this](absl::Span<const float> groups, const EncodeOptions& with) { return inner_->CostBits(groups, with); });
}

// Reads the merged group and the other tensors with a cursor each, and goes through the model's tensors in their order.
class GroupedCodec::Cursor : public UpdateCursor {
 public:
  Cursor(const GroupedCodec* codec, std::unique_ptr<UpdateCursor> merged, std::unique_ptr<UpdateCursor> other)
      : codec_(codec), merged_(std::move(merged)), other_(std::move(other)) {}

  std::unique_ptr<UpdateCursor> Clone() const override {
    auto clone = std::make_unique<Cursor>(codec_, merged_->Clone(), other_->Clone());
    clone->tensor_ = tensor_;
    return clone;
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    run->count = 0;
    const absl::Span<const TensorSpec> tensors = codec_->layout_.tensors();
    while (tensor_ < tensors.size() && tensors[tensor_].offset < limit) {
      const TensorSpec& tensor = tensors[tensor_];
      const int64_t inner_offset = codec_->inner_offsets_[tensor_];
      const int64_t below = std::min(limit - tensor.offset, tensor.size);
      UpdateCursor* cursor = inner_offset < codec_->merged_size_ ? merged_.get() : other_.get();
      TERSE_RETURN_IF_ERROR(cursor->Next(inner_offset + below, run));
      if (run->count > 0) {
        run->begin += tensor.offset - inner_offset;
        return absl::OkStatus();
      }
      if (below < tensor.size) return absl::OkStatus();
      ++tensor_;
    }
    // The bytes behind the last tensor.
    return tensor_ < tensors.size() ? absl::OkStatus() : other_->Next(codec_->layout_.size(), run);
  }

 private:
  const GroupedCodec* const codec_;
  std::unique_ptr<UpdateCursor> merged_;
  std::unique_ptr<UpdateCursor> other_;
  size_t tensor_ = 0;
};

absl::StatusOr<std::unique_ptr<UpdateCursor>> GroupedCodec::Open(absl::string_view message) const {
  TERSE_ASSIGN_OR_RETURN(std::unique_ptr<UpdateCursor> merged, inner_->Open(message));
  if (!reorders()) return merged;
  std::unique_ptr<UpdateCursor> other = merged->Clone();
  DecodedRun run;
  do {
    TERSE_RETURN_IF_ERROR(other->Next(merged_size_, &run));
  } while (run.count > 0);
  return std::unique_ptr<UpdateCursor>(std::make_unique<Cursor>(this, std::move(merged), std::move(other)));
}

}  // namespace terse
