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
  std::vector<float> values;
  const absl::optional<int64_t> bad = SelectAtLeast(input.values, format().fixed_scale, &part->positions, &values);
  if (bad.has_value()) return NotFinite(input, *bad);
  for (float value : values) part->payload.push_back(value < 0 ? 1 : 0);
  return absl::OkStatus();
}

}  // namespace terse
