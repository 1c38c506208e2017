#include "compression/top_k.h"

#include <utility>

#include "absl/memory/memory.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> TopKCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  SparseFormat format;
  format.number = 0x07;
  format.values = SparseValues::kFloats;
  format.planned = PlannedCounts(spec, layout);
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new TopKCodec(layout, std::move(format)));
}

absl::Status TopKCodec::Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const {
  return SelectLargestFloats(input, format().planned[input.tensor], selector, part);
}

}  // namespace terse
