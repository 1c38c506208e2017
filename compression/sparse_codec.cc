#include "compression/sparse_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/exact_math.h"
#include "core/status.h"

namespace terse {
namespace {

// Bits that hold every value up to `most`.
int BitLength(int64_t most) { return most == 0 ? 0 : 64 - __builtin_clzll(static_cast<uint64_t>(most)); }

constexpr uint32_t kSignBit = 0x80000000u;

}  // namespace

int64_t PlannedCount(double density, int64_t size) {
  return std::min(size, std::max<int64_t>(1, std::llround(density * static_cast<double>(size))));
}

std::vector<int64_t> PlannedCounts(double density, const Layout& layout) {
  std::vector<int64_t> planned;
  for (const TensorSpec& tensor : layout.tensors()) planned.push_back(PlannedCount(density, tensor.size));
  return planned;
}

absl::Status CheckDensity(const CodecSpec& spec) {
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
  if (format_.values == SparseValues::kFloats || format_.values == SparseValues::kFixed) return 0;
  return format_.bf16_scales ? 16 : 32;
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
  }
  return 0;
}

int64_t SparseCodec::PayloadBits(const SparsePart& part) const {
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
  part->positions = largest.indices;
  part->payload.reserve(largest.values.size());
  for (float value : largest.values) part->payload.push_back(FloatBits(value));
  return absl::OkStatus();
}

absl::Status SparseCodec::NotFinite(const TensorInput& input, int64_t index) const {
  const float residual = input.residual == nullptr ? 0 : input.residual[index];
  return TensorCodec::NotFinite(input.tensor, index, input.values[index] + residual);
}

struct SparseCodec::Scratch : EncodeScratch {
  // That of an encoding's tensors, or `own` where the caller gave none.
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
    part.scale = 0;
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
  const bool levels = format_.values == SparseValues::kLevels;
  const int element_bits = ElementBits(part.is_signed);
  for (uint32_t payload : part.payload) {
    if (levels) {
      PutLevel(payload, writer);
    } else {
      writer->Put(payload, element_bits);
    }
  }
  format_.coder->Put(part.positions, this->tensor(tensor).size, writer);
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

class SparseCodec::Reader : public TensorReader {
 public:
  explicit Reader(const SparseCodec* codec) : codec_(codec) {}

  std::unique_ptr<TensorReader> Clone() const override {
    auto clone = std::make_unique<Reader>(codec_);
    clone->at_ = at_;
    if (reader_ != nullptr) clone->reader_ = reader_->Clone();
    return clone;
  }

  absl::Status StartMessage(BitReader* stream) override {
    if (codec_->format_.planned.empty()) return absl::OkStatus();
    uint32_t all_planned = 0;
    if (!stream->Get(1, &all_planned)) return TruncatedIn("its header");
    at_.all_planned = all_planned == 1;
    return absl::OkStatus();
  }

  absl::Status StartTensor(int64_t tensor, BitReader* stream) override {
    at_.tensor = tensor;
    reader_ = nullptr;
    at_.filled = 0;
    at_.used = 0;
    TERSE_RETURN_IF_ERROR(ReadCount(stream));
    if (at_.left == 0) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(ReadScale(stream));
    at_.payload = *stream;
    TERSE_RETURN_IF_ERROR(SkipPayload(stream));
    TERSE_ASSIGN_OR_RETURN(reader_, codec_->format_.coder->Open(at_.left, codec_->tensor(tensor).size, *stream));
    return absl::OkStatus();
  }

  absl::Status Next(int64_t limit, DecodedRun* run) override {
    run->count = 0;
    if (at_.used == at_.filled) TERSE_RETURN_IF_ERROR(Fill());
    const int64_t end = codec_->tensor(at_.tensor).offset + limit;
    int64_t until = at_.filled;
    if (at_.used < at_.filled && at_.positions[at_.filled - 1] >= end) {
      until = at_.used + CountBelow(at_.positions + at_.used, at_.filled - at_.used, end);
    }
    run->count = until - at_.used;
    run->positions = at_.positions + at_.used;
    run->values = at_.values + at_.used;
    run->common = codec_->ElementBits(at_.is_signed) == 0;
    at_.used = until;
    return absl::OkStatus();
  }

  absl::Status FinishTensor(BitReader* stream) override {
    if (reader_ != nullptr) {
      TERSE_ASSIGN_OR_RETURN(*stream, reader_->Finish());
    }
    const bool last = at_.tensor + 1 == static_cast<int64_t>(codec_->layout().tensors().size());
    if (last && !codec_->format_.planned.empty() && !at_.all_planned && !at_.any_corrected) {
      return absl::InvalidArgumentError("the message corrects no count; its first bit must be 1 then");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadCount(BitReader* stream) {
    const bool free = codec_->format_.planned.empty();
    uint32_t as_planned = free ? 0 : 1;
    if (!free && !at_.all_planned && !stream->Get(1, &as_planned)) return TruncatedIn("its header");
    if (as_planned == 1) {
      at_.left = codec_->format_.planned[at_.tensor];
      return absl::OkStatus();
    }
    at_.any_corrected = true;
    uint32_t count = 0;
    if (!stream->Get(codec_->CountBits(at_.tensor), &count)) return TruncatedIn("its header");
    const int64_t most = free ? codec_->tensor(at_.tensor).size : codec_->format_.planned[at_.tensor] - 1;
    if (count > most) {
      return absl::InvalidArgumentError(absl::StrCat("a count of ", count, "; at most ", most, " can be written here"));
    }
    at_.left = count;
    return absl::OkStatus();
  }

  absl::Status ReadScale(BitReader* stream) {
    const SparseFormat& format = codec_->format_;
    uint32_t is_signed = format.values != SparseValues::kCommon;
    if (format.values == SparseValues::kCommonOrSigned && !stream->Get(1, &is_signed)) return TruncatedIn("its header");
    at_.is_signed = is_signed == 1;
    at_.scale = format.fixed_scale;
    const int scale_bits = codec_->ScaleBits();
    if (scale_bits > 0) {
      uint32_t bits = 0;
      if (!stream->Get(scale_bits, &bits)) return TruncatedIn("its header");
      at_.scale = FloatFromBits(bits << (32 - scale_bits));
      const uint32_t magnitude = MagnitudeBits(FloatBits(at_.scale));
      if (magnitude == 0 || magnitude >= kInfinityBits || (at_.is_signed && at_.scale < 0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("its scale is ", at_.scale, "; it must be finite, not 0, and positive where signs follow"));
      }
    }
    if (codec_->ElementBits(at_.is_signed) == 0) std::fill(at_.values, at_.values + kDecodedRun, at_.scale);
    return absl::OkStatus();
  }

  // Moves past the values, to where the positions begin.
  absl::Status SkipPayload(BitReader* stream) {
    if (codec_->format_.values != SparseValues::kLevels) {
      const uint64_t bits = static_cast<uint64_t>(at_.left) * codec_->ElementBits(at_.is_signed);
      return stream->Skip(bits) ? absl::OkStatus() : TruncatedIn("its values");
    }
    for (int64_t i = 0; i < at_.left; ++i) {
      uint32_t level = 0;
      if (!GetLevel(stream, &level)) {
        return absl::InvalidArgumentError("its values end early, or one is 2^31 scales or more");
      }
    }
    return absl::OkStatus();
  }

  // Decodes the next elements into the buffer.
  absl::Status Fill() {
    at_.filled = std::min(at_.left, kDecodedRun);
    at_.used = 0;
    at_.left -= at_.filled;
    if (at_.filled == 0) return absl::OkStatus();
    TERSE_RETURN_IF_ERROR(reader_->Next(absl::MakeSpan(at_.positions, at_.filled)));
    const uint32_t offset = static_cast<uint32_t>(codec_->tensor(at_.tensor).offset);
    for (int64_t i = 0; i < at_.filled; ++i) at_.positions[i] += offset;
    switch (codec_->ElementBits(at_.is_signed)) {
      case 0:
        return absl::OkStatus();
      case 1:
        FillSigns();
        return absl::OkStatus();
      case 32:
        return FillFloats();
      default:
        FillLevels();
        return absl::OkStatus();
    }
  }

  // StartTensor saw that the payloads of all elements are there.
  void FillSigns() {
    for (int64_t i = 0; i < at_.filled; ++i) {
      uint32_t negative = 0;
      at_.payload.Get(1, &negative);
      at_.values[i] = FloatFromBits(FloatBits(at_.scale) ^ (negative == 1 ? kSignBit : 0));
    }
  }

  void FillLevels() {
    for (int64_t i = 0; i < at_.filled; ++i) {
      uint32_t level = 0;
      GetLevel(&at_.payload, &level);
      at_.values[i] = LevelValue(at_.scale, level);
    }
  }

  absl::Status FillFloats() {
    for (int64_t i = 0; i < at_.filled; ++i) {
      uint32_t payload = 0;
      at_.payload.Get(32, &payload);
      if (MagnitudeBits(payload) == 0 || MagnitudeBits(payload) >= kInfinityBits) {
        return absl::InvalidArgumentError(
            absl::StrCat("a value of ", FloatFromBits(payload), "; values must be finite and not 0"));
      }
      at_.values[i] = FloatFromBits(payload);
    }
    return absl::OkStatus();
  }

  struct State {
    bool all_planned = false;
    bool any_corrected = false;
    int64_t tensor = 0;
    bool is_signed = false;
    float scale = 0;
    BitReader payload;
    int64_t left = 0;    // elements that are not in the buffer yet
    int64_t filled = 0;  // of the buffer
    int64_t used = 0;
    uint32_t positions[kDecodedRun];
    float values[kDecodedRun];
  };

  const SparseCodec* const codec_;
  State at_;
  std::unique_ptr<PositionReader> reader_;
};

std::unique_ptr<TensorReader> SparseCodec::NewReader() const { return std::make_unique<Reader>(this); }

}  // namespace terse
