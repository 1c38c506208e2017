#include "compression/adacomp.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "compression/exact_math.h"
#include "compression/fetch_ahead.h"
#include "compression/position_coder_table.h"
#include "compression/quantize_kernels.h"
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
  TensorInput newest = input;
  newest.values = input.latest;
  const int64_t size = static_cast<int64_t>(input.values.size());
  const int64_t bin = tensor(input.tensor).shape.size() == 4 ? kAdaCompConvolutionBin : kAdaCompBin;
  const int64_t step = kMarkRun / bin * bin;
  uint32_t marks[kMarkRun];
  double sum = 0;
  for (int64_t first = 0; first < size; first += step) {
    const int64_t end = std::min(first + step, size);
    FetchAheadToRead(input.values.data() + first, static_cast<int64_t>(sizeof(float)) * (end - first));
    FetchAheadToRead(input.latest.data() + first, static_cast<int64_t>(sizeof(float)) * (end - first));
    TERSE_RETURN_IF_ERROR(CheckFinite(input, first, end - first));
    TERSE_RETURN_IF_ERROR(CheckFinite(newest, first, end - first));
    for (int64_t begin = first; begin < end; begin += bin) {
      const absl::Span<const float> values = input.values.subspan(begin, std::min(bin, end - begin));
      const float largest = LargestMagnitude(values);
      sum += static_cast<double>(largest);
      GetQuantizeKernels().mark_at_least(values.data(), input.latest.data() + begin,
                                         static_cast<int64_t>(values.size()), largest, marks + (begin - first));
    }
    AppendMarked(absl::MakeConstSpan(marks, end - first), first, part);
  }
  if (!part->positions.empty()) part->scale = RoundScale(sum / static_cast<double>((size + bin - 1) / bin));
  return absl::OkStatus();
}

}  // namespace terse
