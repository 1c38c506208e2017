#include "compression/sbc.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/position_coder_table.h"
#include "core/status.h"

namespace terse {

absl::StatusOr<std::unique_ptr<const Codec>> SbcCodec::Create(const CodecSpec& spec, const Layout& layout) {
  return CreateWith(0x04, SparseValues::kCommon, spec, layout);
}

absl::StatusOr<std::unique_ptr<const Codec>> SbcCodec::CreateStc(const CodecSpec& spec, const Layout& layout) {
  return CreateWith(0x05, SparseValues::kSigned, spec, layout);
}

absl::StatusOr<std::unique_ptr<const Codec>> SbcCodec::CreateEither(const CodecSpec& spec, const Layout& layout) {
  return CreateWith(0x06, SparseValues::kCommonOrSigned, spec, layout);
}

absl::StatusOr<std::unique_ptr<const Codec>> SbcCodec::CreateWith(int format_number, SparseValues values,
                                                                  const CodecSpec& spec, const Layout& layout) {
  TERSE_RETURN_IF_ERROR(CheckDensity(spec));
  if (spec.mean_precision != "fp32" && spec.mean_precision != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.mean_precision is '", spec.mean_precision, "'; ", spec.name, " knows 'fp32' and 'bf16'"));
  }
  SparseFormat format;
  format.number = format_number;
  format.values = values;
  format.planned = PlannedCounts(spec, layout);
  format.bf16_scales = spec.mean_precision == "bf16";
  TERSE_ASSIGN_OR_RETURN(format.coder, FindPositionCoder(spec.positions));
  return absl::WrapUnique<const Codec>(new SbcCodec(layout, std::move(format)));
}

absl::string_view SbcCodec::name() const {
  switch (format().values) {
    case SparseValues::kSigned:
      return "stc";
    case SparseValues::kCommonOrSigned:
      return "sbc_or_stc";
    default:
      return "sbc";
  }
}

absl::Status SbcCodec::Select(const TensorInput& input, TopSelector* selector, SparsePart* part) const {
  const absl::optional<int64_t> bad =
      FindEntries({input.values, input.residual, input.sum}, format().planned[input.tensor], selector);
  if (bad.has_value()) return NotFinite(input, *bad);
  if (TakesTwoSided(*selector, static_cast<int64_t>(input.values.size()))) {
    TwoSided(*selector, part);
  } else {
    OneSided(*selector, part);
  }
  return absl::OkStatus();
}

absl::optional<int64_t> SbcCodec::FindEntries(const SelectInput& numbers, int64_t count, TopSelector* selector) const {
  switch (format().values) {
    case SparseValues::kCommon:
      return selector->SelectTails(numbers, count);
    case SparseValues::kSigned:
      return selector->SelectLargest(numbers, count);
    default:
      return selector->SelectTailsAndLargest(numbers, count);
  }
}

bool SbcCodec::TakesTwoSided(const TopSelector& selector, int64_t size) const {
  if (format().values != SparseValues::kCommonOrSigned) return format().values == SparseValues::kSigned;
  return EnergyPerBit(selector.largest(), 1, size) > EnergyPerBit(LargerTail(selector), 0, size);
}

const TopEntries& SbcCodec::LargerTail(const TopSelector& selector) {
  // Both means are over k, so the larger sum is the larger mean.
  return selector.positive().sum >= selector.negative().sum ? selector.positive() : selector.negative();
}

float SbcCodec::Mean(const TopEntries& entries) const {
  return RoundScale(entries.sum / static_cast<double>(entries.indices.size()));
}

void SbcCodec::OneSided(const TopSelector& selector, SparsePart* part) const {
  const TopEntries& tail = LargerTail(selector);
  if (tail.indices.empty()) return;
  part->scale = &tail == &selector.positive() ? Mean(tail) : -Mean(tail);
  part->positions.assign(tail.indices.begin(), tail.indices.end());
}

void SbcCodec::TwoSided(const TopSelector& selector, SparsePart* part) const {
  const TopEntries& largest = selector.largest();
  if (largest.indices.empty()) return;
  part->is_signed = true;
  part->scale = Mean(largest);
  part->positions.assign(largest.indices.begin(), largest.indices.end());
  part->payload.reserve(largest.values.size());
  for (float value : largest.values) part->payload.push_back(value < 0 ? 1 : 0);
}

double SbcCodec::EnergyPerBit(const TopEntries& entries, int64_t sign_bits, int64_t size) const {
  if (entries.indices.empty()) return 0;
  const int64_t count = static_cast<int64_t>(entries.indices.size());
  const double mean = static_cast<double>(Mean(entries));
  const double energy = static_cast<double>(count) * mean * mean;
  const int scale_bits = format().bf16_scales ? 16 : 32;
  const int64_t bits = scale_bits + count * sign_bits + format().coder->Bits(entries.indices, size);
  return energy / static_cast<double>(bits);
}

}  // namespace terse
