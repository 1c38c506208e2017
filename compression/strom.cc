#include "compression/strom.h"

#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> StromCodec::Create(const CodecSpec& spec, const Layout& layout) {
  SparseFormat format;
  format.number = 0x09;
  format.values = SparseValues::kFixed;
  if (spec.threshold > 0 && spec.threshold <= static_cast<double>(std::numeric_limits<float>::max())) {
    format.fixed_scale = static_cast<float>(spec.threshold);
  }
  if (format.fixed_scale == 0) {
    return absl::InvalidArgumentError(absl::StrCat("codec.threshold is ", spec.threshold,
                                                   "; strom needs a positive float32, of the size of a large element"));
  }
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new StromCodec(layout, std::move(format)));
}

absl::Status StromCodec::Select(const TensorInput& input, TopSelector*, SparsePart* part) const {
  TERSE_RETURN_IF_ERROR(CheckFinite(input));
  const float threshold = format().fixed_scale;
  for (size_t i = 0; i < input.values.size(); ++i) {
    const float value = input.values[i];
    if (value < threshold && value > -threshold) continue;
    part->positions.push_back(static_cast<uint32_t>(i));
    part->payload.push_back(value < 0 ? 1 : 0);
  }
  return absl::OkStatus();
}

}  // namespace terse
