#include "compression/sparse_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/bit_fields.h"
#include "compression/exact_math.h"
#include "compression/select_kernels.h"
#include "compression/sparse_reader.h"
#include "core/status.h"

namespace terse {
namespace {

constexpr absl::string_view kEqualCounts = "equal";

// Bits that hold every value up to `most`.
int BitLength(int64_t most) { return most == 0 ? 0 : 64 - __builtin_clzll(static_cast<uint64_t>(most)); }

}  // namespace

int64_t PlannedCount(double density, int64_t size) {
  return std::min(size, std::max<int64_t>(1, std::llround(density * static_cast<double>(size))));
}

std::vector<int64_t> PlannedCounts(const CodecSpec& spec, const Layout& layout) {
  int64_t largest = 0;
  for (const TensorSpec& tensor : layout.tensors()) largest = std::max(largest, tensor.size);
  const bool equal = spec.counts == kEqualCounts;
  std::vector<int64_t> planned;
  for (const TensorSpec& tensor : layout.tensors()) {
    planned.push_back(std::min(tensor.size, PlannedCount(spec.density, equal ? largest : tensor.size)));
  }
  return planned;
}

absl::Status CheckDensity(const CodecSpec& spec) {
  if (spec.counts != "proportional" && spec.counts != kEqualCounts) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.counts is '", spec.counts, "'; there are 'proportional' and '", kEqualCounts, "'"));
  }
  if (spec.density > 0 && spec.density <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("codec.density is ", spec.density, "; ", spec.name,
                                                 " needs a fraction above 0 and at most 1, such as 0.01"));
}

SparseCodec::SparseCodec(const Layout& layout, SparseFormat format)
    : TensorCodec(layout, format.number), format_(std::move(format)) {
  int64_t bits = 1;
  const int payload = ElementBits(format_.values != SparseValues::kCommon);
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const int64_t size = layout.tensors()[t].size;
    const int64_t most = format_.planned.empty() ? size : format_.planned[t];
    bits += 1 + CountBits(t) + 1 + ScaleBits() + most * payload + format_.coder->MaxBits(most, size);
    if (format_.values == SparseValues::kTable) bits += MaxLevelsBits(most, payload) - most * payload;
  }
  SetMaxBits(bits);
}

float SparseCodec::RoundScale(double scale) const {
  const float nearest = RoundToFiniteFloat(scale);
  if (!format_.bf16_scales) return nearest;
  uint32_t bits = FloatBits(nearest);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return FloatFromBits(std::min<uint32_t>(std::max<uint32_t>(bits, 1), (kInfinityBits >> 16) - 1) << 16);
}

int SparseCodec::CountBits(int64_t tensor) const {
  return BitLength(format_.planned.empty() ? this->tensor(tensor).size : format_.planned[tensor] - 1);
}

int SparseCodec::ScaleBits() const {
  switch (format_.values) {
    case SparseValues::kFloats:
    case SparseValues::kFixed:
    case SparseValues::kTable:
      return 0;
    default:
      return format_.bf16_scales ? 16 : 32;
  }
}

int SparseCodec::ElementBits(bool is_signed) const {
  switch (format_.values) {
    case SparseValues::kCommon:
      return 0;
    case SparseValues::kFloats:
      return 32;
    case SparseValues::kCommonOrSigned:
      return is_signed ? 1 : 0;
    case SparseValues::kSigned:
    case SparseValues::kFixed:
      return 1;
    case SparseValues::kLevels:
      return kMostLevelBits;
    case SparseValues::kTable:
      return format_.level_bits;
  }
  return 0;
}

int64_t SparseCodec::PayloadBits(const SparsePart& part) const {
  if (format_.values == SparseValues::kTable) return LevelsBits(part.payload, format_.level_bits);
  if (format_.values != SparseValues::kLevels) {
    return static_cast<int64_t>(part.positions.size()) * ElementBits(part.is_signed);
  }
  int64_t bits = 0;
  for (uint32_t level : part.payload) bits += LevelBits(level);
  return bits;
}

absl::Status SparseCodec::SelectLargestFloats(const TensorInput& input, int64_t count, TopSelector* selector,
                                              SparsePart* part) const {
  const absl::optional<int64_t> bad = selector->SelectLargest({input.values, input.residual, input.sum}, count);
  if (bad.has_value()) return NotFinite(input, *bad);
  const TopEntries& largest = selector->largest();
  part->positions.assign(largest.indices.begin(), largest.indices.end());
  part->payload.reserve(largest.values.size());
  for (float value : largest.values) part->payload.push_back(FloatBits(value));
  return absl::OkStatus();
}

void SparseCodec::AppendMarked(absl::Span<const uint32_t> marks, int64_t first, SparsePart* part) {
  uint32_t places[kMarkRun + kSelectPad];
  const int64_t count = GetSelectKernels().nonzero(marks.data(), static_cast<int64_t>(marks.size()),
                                                   static_cast<uint32_t>(first), places);
  uint32_t payload[kMarkRun];
  for (int64_t i = 0; i < count; ++i) payload[i] = marks[places[i] - static_cast<uint32_t>(first)] - 1;
  part->positions.insert(part->positions.end(), places, places + count);
  part->payload.insert(part->payload.end(), payload, payload + count);
}

absl::Status SparseCodec::NotFinite(const TensorInput& input, int64_t index) const {
  const float residual = input.residual == nullptr ? 0 : input.residual[index];
  return TensorCodec::NotFinite(input.tensor, index, input.values[index] + residual);
}

struct SparseCodec::Scratch : EncodeScratch {
  // Returns the scratch of an encoding's tensors, or `own` where the caller gave none.
  static Scratch* Of(absl::Span<const TensorInput> tensors, Scratch* own) {
    Scratch* const given = dynamic_cast<Scratch*>(tensors.front().scratch);
    return given == nullptr ? own : given;
  }

  TopSelector selector;
  std::vector<SparsePart> parts;
};

std::unique_ptr<EncodeScratch> SparseCodec::NewScratch() const { return std::make_unique<Scratch>(); }

absl::Status SparseCodec::SelectAll(absl::Span<const TensorInput> tensors, Scratch* scratch) const {
  scratch->parts.resize(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    SparsePart& part = scratch->parts[t];
    part.positions.clear();
    part.payload.clear();
    part.is_signed = false;
    part.scale = format_.fixed_scale;
    TERSE_RETURN_IF_ERROR(Select(tensors[t], &scratch->selector, &part));
  }
  return absl::OkStatus();
}

bool SparseCodec::AllPlanned(absl::Span<const SparsePart> parts) const {
  return std::equal(
      parts.begin(), parts.end(), format_.planned.begin(), format_.planned.end(),
      [](const SparsePart& part, int64_t planned) { return static_cast<int64_t>(part.positions.size()) == planned; });
}

absl::Status SparseCodec::EncodeTensors(absl::Span<const TensorInput> tensors, BitWriter* writer) const {
  Scratch own;
  Scratch* const scratch = Scratch::Of(tensors, &own);
  TERSE_RETURN_IF_ERROR(SelectAll(tensors, scratch));
  const std::vector<SparsePart>& parts = scratch->parts;
  const bool all_planned = AllPlanned(parts);
  if (!format_.planned.empty()) writer->Put(all_planned, 1);
  for (size_t t = 0; t < parts.size(); ++t) PutPart(t, all_planned, parts[t], writer);
  return absl::OkStatus();
}

void SparseCodec::PutPart(int64_t tensor, bool all_planned, const SparsePart& part, BitWriter* writer) const {
  const int64_t count = part.positions.size();
  if (format_.planned.empty()) {
    writer->Put(count, CountBits(tensor));
  } else if (!all_planned) {
    const bool as_planned = count == format_.planned[tensor];
    writer->Put(as_planned, 1);
    if (!as_planned) writer->Put(count, CountBits(tensor));
  }
  if (count == 0) return;
  if (format_.values == SparseValues::kCommonOrSigned) writer->Put(part.is_signed, 1);
  if (ScaleBits() > 0) writer->Put(FloatBits(part.scale) >> (32 - ScaleBits()), ScaleBits());
  PutPayload(part, writer);
  format_.coder->Put(part.positions, this->tensor(tensor).size, writer);
}

void SparseCodec::PutPayload(const SparsePart& part, BitWriter* writer) const {
  if (format_.values == SparseValues::kTable) {
    PutLevels(part.payload, format_.level_bits, part.table, writer);
  } else if (format_.values == SparseValues::kLevels) {
    for (uint32_t level : part.payload) PutLevel(level, writer);
  } else {
    PutFields(part.payload, ElementBits(part.is_signed), writer);
  }
}

void SparseCodec::DecodePayload(const SparseCommon& common, absl::Span<const uint32_t> payload, float* values) const {
  const size_t count = payload.size();
  switch (format_.values) {
    case SparseValues::kTable:
      for (size_t i = 0; i < count; ++i) values[i] = common.table[payload[i]];
      return;
    case SparseValues::kFloats:
      for (size_t i = 0; i < count; ++i) values[i] = FloatFromBits(payload[i]);
      return;
    case SparseValues::kLevels:
      for (size_t i = 0; i < count; ++i) values[i] = LevelValue(common.scale, payload[i]);
      return;
    default: {
      const uint32_t bits = FloatBits(common.scale);
      for (size_t i = 0; i < count; ++i) values[i] = FloatFromBits(bits ^ payload[i] << 31);
    }
  }
}

void SparseCodec::AddPart(const SparsePart& part, float sign, float* accumulator) const {
  float values[kDecodedRun] = {part.scale};
  const bool common = ElementBits(part.is_signed) == 0;
  const DecodedRun all = {static_cast<int64_t>(part.positions.size()), part.positions.data(), 0, values, true};
  for (int64_t done = 0; done < all.count; done += kDecodedRun) {
    DecodedRun run = all.Slice(done, kDecodedRun);
    run.common = common;
    if (!common) DecodePayload(part, absl::MakeSpan(part.payload).subspan(done, run.count), values);
    AddRun(run, sign, 0, accumulator);
  }
}

bool SparseCodec::AddEncoded(const EncodeScratch& scratch, float sign, absl::Span<float> accumulator) const {
  const Scratch* const kept = dynamic_cast<const Scratch*>(&scratch);
  if (kept == nullptr || kept->parts.empty()) return false;
  for (size_t t = 0; t < kept->parts.size(); ++t) AddPart(kept->parts[t], sign, accumulator.data() + tensor(t).offset);
  return true;
}

absl::StatusOr<int64_t> SparseCodec::TensorsBits(absl::Span<const TensorInput> tensors) const {
  Scratch own;
  Scratch* const scratch = Scratch::Of(tensors, &own);
  TERSE_RETURN_IF_ERROR(SelectAll(tensors, scratch));
  const std::vector<SparsePart>& parts = scratch->parts;
  const bool all_planned = AllPlanned(parts);
  int64_t bits = format_.planned.empty() ? 0 : 1;
  for (size_t t = 0; t < parts.size(); ++t) bits += PartBits(t, all_planned, parts[t]);
  return bits;
}

int64_t SparseCodec::PartBits(int64_t tensor, bool all_planned, const SparsePart& part) const {
  const int64_t count = part.positions.size();
  int64_t bits = 0;
  if (format_.planned.empty()) {
    bits += CountBits(tensor);
  } else if (!all_planned) {
    bits += 1 + (count == format_.planned[tensor] ? 0 : CountBits(tensor));
  }
  if (count == 0) return bits;
  bits += (format_.values == SparseValues::kCommonOrSigned) + ScaleBits() + PayloadBits(part);
  return bits + format_.coder->Bits(part.positions, this->tensor(tensor).size);
}

std::unique_ptr<TensorReader> SparseCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace terse
