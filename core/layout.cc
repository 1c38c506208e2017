#include "core/layout.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace terse {

absl::StatusOr<Layout> Layout::Create(absl::Span<const Entry> entries) {
  Layout layout;
  absl::flat_hash_set<std::string> names;
  for (const Entry& entry : entries) {
    if (!names.insert(entry.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", entry.name, "' appears twice"));
    }
    if (entry.kind == TensorKind::kParameter && layout.parameters_ < layout.size_) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter '", entry.name, "' stands behind a buffer; list all buffers last"));
    }
    int64_t size = 1;
    for (int64_t dimension : entry.shape) {
      if (dimension < 1 || size > kMostTensorElements / dimension) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor '", entry.name, "' has the unusable shape [", absl::StrJoin(entry.shape, ", "), "]"));
      }
      size *= dimension;
    }
    if (layout.size_ > kMostElements - size) {
      return absl::InvalidArgumentError(absl::StrCat("the model has more than ", kMostElements, " elements"));
    }
    layout.tensors_.push_back({entry.name, entry.shape, layout.size_, size, entry.kind});
    layout.size_ += size;
    if (entry.kind == TensorKind::kParameter) layout.parameters_ = layout.size_;
  }
  if (layout.parameters_ == 0) return absl::InvalidArgumentError("a model needs at least one trainable tensor");
  return layout;
}

Layout Layout::WithoutBuffers() const {
  const auto is_buffer = [](const TensorSpec& tensor) { return tensor.kind == TensorKind::kBuffer; };
  Layout layout;
  layout.tensors_.assign(tensors_.begin(), std::find_if(tensors_.begin(), tensors_.end(), is_buffer));
  layout.size_ = layout.parameters_ = parameters_;
  return layout;
}

std::vector<Layout::Range> Layout::WeightRanges() const {
  std::vector<Range> ranges;
  for (const TensorSpec& tensor : tensors_) {
    if (tensor.kind == TensorKind::kBuffer || tensor.shape.size() < 2) continue;
    if (!ranges.empty() && ranges.back().begin + ranges.back().size == tensor.offset) {
      ranges.back().size += tensor.size;
    } else {
      ranges.push_back({tensor.offset, tensor.size});
    }
  }
  return ranges;
}

Id128 Layout::Hash() const {
  std::string text;
  for (const TensorSpec& tensor : tensors_) {
    absl::StrAppend(&text, tensor.name, "[", absl::StrJoin(tensor.shape, ","),
                    tensor.kind == TensorKind::kBuffer ? "] buffer\n" : "]\n");
  }
  return HashBytes(text);
}

}  // namespace terse
