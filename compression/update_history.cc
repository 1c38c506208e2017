#include "compression/update_history.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status.h"

namespace terse {
namespace {

// The first byte: of the statistics too, for whoever computes others from the same numbers must not read them.
constexpr char kFormat = 1;

int64_t Rows(const TensorSpec& tensor) { return tensor.shape.empty() ? 1 : tensor.shape.front(); }

}  // namespace

UpdateHistory::UpdateHistory(const Layout& layout) {
  for (const TensorSpec& tensor : layout.tensors()) tensors_.emplace_back(Rows(tensor), tensor.size / Rows(tensor));
}

std::string UpdateHistory::Serialize() const {
  int64_t bytes = 1;
  for (const PositionHistory& tensor : tensors_) bytes += tensor.StateBytes();
  std::string out;
  out.reserve(bytes);
  out.push_back(kFormat);
  for (const PositionHistory& tensor : tensors_) tensor.AppendState(&out);
  return out;
}

absl::StatusOr<UpdateHistory> UpdateHistory::Parse(const Layout& layout, absl::string_view bytes) {
  if (bytes.empty() || bytes.front() != kFormat) {
    return absl::InvalidArgumentError("a history of updates in another format");
  }
  bytes.remove_prefix(1);
  UpdateHistory empty(layout), history;
  for (size_t t = 0; t < empty.tensors_.size(); ++t) {
    const TensorSpec& spec = layout.tensors()[t];
    const bool is_last = t + 1 == empty.tensors_.size();
    const absl::string_view state = is_last ? bytes : bytes.substr(0, empty.tensors_[t].StateBytes());
    bytes.remove_prefix(state.size());
    auto tensor = PositionHistory::FromState(Rows(spec), spec.size / Rows(spec), state);
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("tensor '", spec.name, "'"));
    history.tensors_.push_back(*std::move(tensor));
  }
  return history;
}

}  // namespace terse
