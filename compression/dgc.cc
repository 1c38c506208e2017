#include "compression/dgc.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> DgcCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  SparseFormat format;
  format.number = 0x08;
  format.values = SparseValues::kFloats;
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new DgcCodec(layout, std::move(format), spec.density));
}

absl::Status DgcCodec::Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const {
  const double density = input.rate == 0 ? density_ : input.rate;  // 0 where there are no rates
  if (!(density > 0 && density <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor(input.tensor).name, "': a rate of ", density,
                                                   "; a density is above 0 and at most 1"));
  }
  const int64_t count = PlannedCount(density, static_cast<int64_t>(input.values.size()));
  return SelectLargestFloats(input, count, selector, part);
}

}  // namespace terse
