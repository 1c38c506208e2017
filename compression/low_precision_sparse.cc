#include "compression/low_precision_sparse.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "compression/counter_random.h"
#include "compression/exact_math.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {
namespace {

// The number of draws that are made at a time.
constexpr size_t kDraws = 1024;

}  // namespace

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
  TERSE_RETURN_IF_ERROR(CheckFinite(input));
  const float largest = LargestMagnitude(input.values);
  if (largest == 0) return absl::OkStatus();
  const double sum = LaneSum(input.values, [](float value) { return static_cast<double>(std::fabs(value)); });
  const size_t size = input.values.size();
  const float scale = RoundScale(std::max(static_cast<double>(largest), sum / (density_ * static_cast<double>(size))));
  const CounterRandom random(input.key, input.tensor);
  uint32_t draws[kDraws];
  for (size_t i = 0; i < size; ++i) {
    if (i % kDraws == 0) {
      random.Fill(static_cast<int64_t>(i), absl::MakeSpan(draws, std::min(kDraws, size - i)));
    }
    const float value = input.values[i];
    const double draw = UniformDouble(draws[i % kDraws]);
    if (draw * static_cast<double>(scale) >= static_cast<double>(std::fabs(value))) continue;
    part->positions.push_back(static_cast<uint32_t>(i));
    part->payload.push_back(value < 0 ? 1 : 0);
  }
  if (!part->positions.empty()) part->scale = scale;
  return absl::OkStatus();
}

}  // namespace terse
