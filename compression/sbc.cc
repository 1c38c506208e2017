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
  const SelectInput numbers{input.values, input.residual, input.sum};
  const int64_t count = format().planned[input.tensor];
  const bool tails = format().values != SparseValues::kSigned;
  const bool both = format().values != SparseValues::kCommon;
  absl::optional<int64_t> bad = tails ? selector->SelectTails(numbers, count) : selector->SelectLargest(numbers, count);
  if (bad.has_value()) return NotFinite(input, *bad);
  if (tails) OneSided(*selector, part);
  if (!both) return absl::OkStatus();
  if (!tails) {
    TwoSided(*selector, part);
    return absl::OkStatus();
  }
  selector->SelectLargestOfTails(count);
  SparsePart two_sided;
  TwoSided(*selector, &two_sided);
  const int64_t size = input.values.size();
  if (EnergyPerBit(two_sided, size) > EnergyPerBit(*part, size)) *part = std::move(two_sided);
  return absl::OkStatus();
}

void SbcCodec::OneSided(const TopSelector& selector, SparsePart* part) const {
  // Both means are over k, so the larger sum is the larger mean.
  const bool positive = selector.positive().sum >= selector.negative().sum;
  const TopEntries& tail = positive ? selector.positive() : selector.negative();
  if (tail.indices.empty()) return;
  const float mean = RoundScale(tail.sum / static_cast<double>(tail.indices.size()));
  part->scale = positive ? mean : -mean;
  part->positions = tail.indices;
}

void SbcCodec::TwoSided(const TopSelector& selector, SparsePart* part) const {
  const TopEntries& largest = selector.largest();
  if (largest.indices.empty()) return;
  part->is_signed = true;
  part->scale = RoundScale(largest.sum / static_cast<double>(largest.indices.size()));
  part->positions = largest.indices;
  part->payload.reserve(largest.values.size());
  for (float value : largest.values) part->payload.push_back(value < 0 ? 1 : 0);
}

double SbcCodec::EnergyPerBit(const SparsePart& part, int64_t size) const {
  if (part.positions.empty()) return 0;
  const double count = static_cast<double>(part.positions.size());
  const double energy = count * static_cast<double>(part.scale) * static_cast<double>(part.scale);
  const int scale_bits = format().bf16_scales ? 16 : 32;
  const int64_t bits =
      scale_bits + static_cast<int64_t>(part.payload.size()) + format().coder->Bits(part.positions, size);
  return energy / static_cast<double>(bits);
}

}  // namespace terse
