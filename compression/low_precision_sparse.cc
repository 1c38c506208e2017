#include "compression/low_precision_sparse.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "compression/counter_random.h"
#include "compression/exact_math.h"
#include "compression/fetch_ahead.h"
#include "compression/position_coder_table.h"
#include "compression/quantize_kernels.h"
#include "core/status.h"

namespace terse {
absl::StatusOr<std::unique_ptr<const Codec>> LowPrecisionSparseCodec::Create(const CodecSpec& spec,
                                                                             const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  SparseFormat format;
  format.number = 0x17;
  format.values = SparseValues::kSigned;
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new LowPrecisionSparseCodec(layout, std::move(format), spec.density));
}

CodecTraits LowPrecisionSparseCodec::traits() const {
  CodecTraits traits;
  traits.unbiased = true;
  traits.stochastic = true;
  return traits;
}

absl::Status LowPrecisionSparseCodec::Select(const TensorInput& input, TopSelector*, SparsePart* part) const {
  const Magnitudes magnitudes = MagnitudesOf(input.values);
  if (!std::isfinite(magnitudes.largest)) return CheckFinite(input);
  if (magnitudes.largest == 0) return absl::OkStatus();
  const int64_t size = static_cast<int64_t>(input.values.size());
  const double budget = magnitudes.sum / (density_ * static_cast<double>(size));
  const float scale = RoundScale(std::max(static_cast<double>(magnitudes.largest), budget));
  const CounterRandom random(input.key, input.tensor);
  uint32_t draws[kMarkRun];
  uint32_t marks[kMarkRun];
  for (int64_t first = 0; first < size; first += kMarkRun) {
    const int64_t count = std::min(kMarkRun, size - first);
    const float* const values = input.values.data() + first;
    FetchAheadToRead(values, static_cast<int64_t>(sizeof(float)) * count);
    random.Fill(first, absl::MakeSpan(draws, count));
    GetQuantizeKernels().mark_by_chance(values, draws, count, static_cast<double>(scale), marks);
    AppendMarked(absl::MakeConstSpan(marks, count), first, part);
  }
  if (!part->positions.empty()) part->scale = scale;
  return absl::OkStatus();
}

}  // namespace terse
