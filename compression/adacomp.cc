#include "compression/adacomp.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/memory/memory.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> AdaCompCodec::Create(const CodecSpec& spec, const Layout& layout) {
  SparseFormat format;
  format.number = 0x0a;
  format.values = SparseValues::kSigned;
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new AdaCompCodec(layout, std::move(format)));
}

CodecTraits AdaCompCodec::traits() const {
  CodecTraits traits;
  traits.uses_latest = true;
  return traits;
}

absl::Status AdaCompCodec::Select(const TensorInput& input, TopSelector*, SparsePart* part) const {
  TERSE_RETURN_IF_ERROR(CheckFinite(input));
  TensorInput newest = input;
  newest.values = input.latest;
  TERSE_RETURN_IF_ERROR(CheckFinite(newest));
  const int64_t size = static_cast<int64_t>(input.values.size());
  const int64_t bin = tensor(input.tensor).shape.size() == 4 ? kAdaCompConvolutionBin : kAdaCompBin;
  double sum = 0;
  for (int64_t begin = 0; begin < size; begin += bin) {
    const int64_t end = std::min(begin + bin, size);
    float largest = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(input.values[i]));
    sum += static_cast<double>(largest);
    for (int64_t i = begin; i < end; ++i) {
      if (input.values[i] == 0 || std::fabs(input.values[i] + input.latest[i]) < largest) continue;
      part->positions.push_back(static_cast<uint32_t>(i));
      part->payload.push_back(input.values[i] < 0 ? 1 : 0);
    }
  }
  if (!part->positions.empty()) part->scale = RoundScale(sum / static_cast<double>((size + bin - 1) / bin));
  return absl::OkStatus();
}

}  // namespace terse
