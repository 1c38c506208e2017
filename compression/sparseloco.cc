#include "compression/sparseloco.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "compression/level_table.h"
#include "compression/position_coder_table.h"
#include "compression/quantized_codec.h"
#include "core/status.h"

namespace terse {
namespace {

// Calls visit(begin, size) for each chunk of a tensor.
template <typename Visit>
void ForEachChunk(int64_t tensor_size, int64_t chunk, Visit visit) {
  const int64_t step = chunk == 0 ? tensor_size : chunk;
  for (int64_t begin = 0; begin < tensor_size; begin += step) visit(begin, std::min(step, tensor_size - begin));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> SparseLoCoCodec::Create(const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  TERSE_RETURN_IF_ERROR(CheckBits(spec, 1, kMostLevelTableBits));
  TERSE_RETURN_IF_ERROR(CheckBucket(spec));
  SparseFormat format;
  format.number = 0x0d;
  format.values = SparseValues::kTable;
  format.level_bits = static_cast<int>(spec.bits);
  for (const TensorSpec& tensor : layout.tensors()) {
    int64_t planned = 0;
    ForEachChunk(tensor.size, spec.bucket, [&](int64_t, int64_t size) { planned += PlannedCount(spec.density, size); });
    format.planned.push_back(planned);
  }
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new SparseLoCoCodec(layout, std::move(format), spec));
}

absl::Status SparseLoCoCodec::Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const {
  std::vector<float> values;
  values.reserve(format().planned[input.tensor]);
  absl::Status status;
  ForEachChunk(static_cast<int64_t>(input.values.size()), chunk_, [&](int64_t begin, int64_t size) {
    if (status.ok()) status = SelectFromChunk(input, begin, size, selector, part, &values);
  });
  if (!status.ok() || values.empty()) return status;
  part->payload.resize(values.size());
  QuantizeToTable(values, format().level_bits, absl::MakeSpan(part->payload), &part->table);
  return absl::OkStatus();
}

absl::Status SparseLoCoCodec::SelectFromChunk(const TensorInput& input, int64_t begin, int64_t size,
                                              TopSelector* selector, SparsePart* part,
                                              std::vector<float>* values) const {
  SelectInput chunk = {input.values.subspan(begin, size)};
  if (input.residual != nullptr) {
    chunk.residual = input.residual + begin;
    chunk.sum = input.sum + begin;
  }
  const absl::optional<int64_t> bad = selector->SelectLargest(chunk, PlannedCount(density_, size));
  if (bad.has_value()) return NotFinite(input, begin + *bad);
  const TopEntries& largest = selector->largest();
  for (const uint32_t index : largest.indices) part->positions.push_back(static_cast<uint32_t>(begin) + index);
  values->insert(values->end(), largest.values.begin(), largest.values.end());
  return absl::OkStatus();
}

}  // namespace terse
