#include "compression/sbc.h"

#include <algorithm>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "compression/top_select.h"
#include "core/status.h"

namespace terse {
namespace {

// Decoded positions at a time: they stay in the first-level cache until they are applied.
constexpr int64_t kRun = 1024;

// k of Algorithm 2. One correctly rounded product of doubles, so both ends agree.
int64_t PlannedCount(double density, int64_t size) {
  return std::min(size, std::max<int64_t>(1, std::llround(density * static_cast<double>(size))));
}

// Bits that hold every value below `planned`.
int CountBits(int64_t planned) { return planned == 1 ? 0 : 64 - __builtin_clzll(static_cast<uint64_t>(planned - 1)); }

absl::Status Truncated() { return absl::InvalidArgumentError("the message ends inside its header; send it whole"); }

absl::Status InTensor(const TensorSpec& tensor, const absl::Status& status) {
  return Annotate(status, absl::StrCat("sbc message, tensor '", tensor.name, "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> SbcCodec::Create(const CodecSpec& spec, const Layout& layout) {
  if (!(spec.density > 0 && spec.density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.density is ", spec.density, "; sbc needs a fraction above 0 and at most 1, such as 0.01"));
  }
  if (spec.mean_precision != "fp32" && spec.mean_precision != "bf16") {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.mean_precision is '", spec.mean_precision, "'; sbc knows 'fp32' and 'bf16'"));
  }
  return absl::WrapUnique<const Codec>(new SbcCodec(spec, layout));
}

SbcCodec::SbcCodec(const CodecSpec& spec, const Layout& layout)
    : layout_(layout), bf16_(spec.mean_precision == "bf16") {
  int64_t bits = 1;
  for (const TensorSpec& tensor : layout_.tensors()) {
    const int64_t planned = PlannedCount(spec.density, tensor.size);
    planned_.push_back(planned);
    bits += 1 + CountBits(planned) + mean_bits() + RiceMaxBits(planned, tensor.size);
  }
  max_message_bytes_ = 1 + (bits + 7) / 8;
}

float SbcCodec::RoundMean(double mean) const {
  uint32_t bits = FloatBits(static_cast<float>(mean));
  if (!bf16_) return FloatFromBits(bits);
  // To nearest, ties to even, but never to zero or infinity: those would not decode.
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return FloatFromBits(std::min<uint32_t>(std::max<uint32_t>(bits, 1), (kInfinityBits >> 16) - 1) << 16);
}

absl::StatusOr<std::string> SbcCodec::Encode(absl::Span<const float> update) const {
  if (update.size() != static_cast<size_t>(layout_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the update has ", update.size(), " elements, the model ", layout_.size()));
  }
  TopSelector selector;
  std::vector<TensorPart> parts(planned_.size());
  std::vector<std::vector<uint32_t>> indices(planned_.size());
  for (size_t t = 0; t < planned_.size(); ++t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    const auto bad = selector.Select(update.subspan(tensor.offset, tensor.size), planned_[t]);
    if (bad.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "', index ", *bad, ": the update is ",
                                                     update[tensor.offset + *bad],
                                                     "; training has diverged, try a lower learning rate"));
    }
    // Both means are over k, so the larger sum is the larger mean.
    const bool positive = selector.positive().sum >= selector.negative().sum;
    const Tail& tail = positive ? selector.positive() : selector.negative();
    if (tail.indices.empty()) continue;
    const float mean = RoundMean(tail.sum / static_cast<double>(tail.indices.size()));
    parts[t].count = tail.indices.size();
    parts[t].value = positive ? mean : -mean;
    parts[t].parameter = RiceParameter(parts[t].count, tensor.size);
    indices[t] = tail.indices;
  }
  std::string message(1, static_cast<char>(format_number()));
  BitWriter writer(&message);
  WriteHeader(parts, &writer);
  for (size_t t = 0; t < parts.size(); ++t) PutRiceRemainders(indices[t], parts[t].parameter, &writer);
  for (size_t t = 0; t < parts.size(); ++t) PutRiceQuotients(indices[t], parts[t].parameter, &writer);
  writer.Finish();
  return message;
}

void SbcCodec::WriteHeader(absl::Span<const TensorPart> parts, BitWriter* writer) const {
  const bool all_planned = std::equal(parts.begin(), parts.end(), planned_.begin(),
                                      [](const TensorPart& part, int64_t planned) { return part.count == planned; });
  writer->Put(all_planned, 1);
  for (size_t t = 0; t < parts.size(); ++t) {
    if (!all_planned) {
      const bool as_planned = parts[t].count == planned_[t];
      writer->Put(as_planned, 1);
      if (!as_planned) writer->Put(parts[t].count, CountBits(planned_[t]));
    }
    if (parts[t].count > 0) writer->Put(FloatBits(parts[t].value) >> (32 - mean_bits()), mean_bits());
  }
}

absl::Status SbcCodec::ReadPart(int64_t tensor, bool as_planned, BitReader* reader, TensorPart* part) const {
  part->count = planned_[tensor];
  if (!as_planned) {
    uint32_t count = 0;
    if (!reader->Get(CountBits(planned_[tensor]), &count)) return Truncated();
    if (count >= planned_[tensor]) {
      return absl::InvalidArgumentError(
          absl::StrCat("a corrected count of ", count, "; it must be below the planned ", planned_[tensor]));
    }
    part->count = count;
  }
  if (part->count == 0) return absl::OkStatus();
  uint32_t bits = 0;
  if (!reader->Get(mean_bits(), &bits)) return Truncated();
  bits <<= 32 - mean_bits();
  if (MagnitudeBits(bits) == 0 || MagnitudeBits(bits) >= kInfinityBits) {
    return absl::InvalidArgumentError(absl::StrCat("its mean is ", FloatFromBits(bits), "; it must be finite, not 0"));
  }
  part->value = FloatFromBits(bits);
  part->parameter = RiceParameter(part->count, layout_.tensors()[tensor].size);
  return absl::OkStatus();
}

absl::StatusOr<SbcCodec::Header> SbcCodec::ReadHeader(absl::string_view message) const {
  if (static_cast<int64_t>(message.size()) > max_message_bytes_) {
    return absl::InvalidArgumentError(absl::StrCat("sbc message of ", message.size(),
                                                   " bytes; this model and density "
                                                   "make at most ",
                                                   max_message_bytes_));
  }
  if (message.empty() || message[0] != format_number()) {
    return absl::InvalidArgumentError(absl::StrCat("not an sbc message of format ", format_number(),
                                                   "; both ends need the same codec and mean precision"));
  }
  BitReader reader(message.substr(1));
  uint32_t all_planned = 0;
  if (!reader.Get(1, &all_planned)) return Annotate(Truncated(), "sbc message");
  Header header;
  header.parts.resize(planned_.size());
  bool any_corrected = false;
  uint64_t remainder_bits = 0;
  for (size_t t = 0; t < planned_.size(); ++t) {
    uint32_t as_planned = 1;
    TensorPart& part = header.parts[t];
    if (all_planned == 0 && !reader.Get(1, &as_planned)) return InTensor(layout_.tensors()[t], Truncated());
    TERSE_RETURN_IF_ERROR(InTensor(layout_.tensors()[t], ReadPart(t, as_planned == 1, &reader, &part)));
    any_corrected |= as_planned == 0;
    remainder_bits += static_cast<uint64_t>(part.count) * part.parameter;
  }
  if (all_planned == 0 && !any_corrected) {
    return absl::InvalidArgumentError("sbc message that corrects no count; its first bit must be 1 then");
  }
  header.remainders = reader;
  if (!reader.Skip(remainder_bits)) {
    return absl::InvalidArgumentError("sbc message ends inside its remainders; send it whole");
  }
  header.quotients = reader;
  return header;
}

template <typename Visit>
absl::Status SbcCodec::ForEachRun(absl::string_view message, Visit visit) const {
  TERSE_ASSIGN_OR_RETURN(const Header header, ReadHeader(message));
  RiceDecoder decoder(header.remainders, header.quotients);
  uint32_t buffer[kRun];
  for (size_t t = 0; t < header.parts.size(); ++t) {
    const TensorSpec& tensor = layout_.tensors()[t];
    const TensorPart& part = header.parts[t];
    decoder.StartTensor(static_cast<uint32_t>(tensor.offset), tensor.size, part.parameter);
    for (int64_t done = 0; done < part.count; done += kRun) {
      const absl::Span<uint32_t> run(buffer, std::min(kRun, part.count - done));
      absl::Status status = decoder.Next(run);
      if (!status.ok()) return InTensor(tensor, status);
      visit(absl::Span<const uint32_t>(run), part.value);
    }
  }
  return Annotate(decoder.Finish(), "sbc message");
}

absl::Status SbcCodec::Validate(absl::string_view message) const {
  return ForEachRun(message, [](absl::Span<const uint32_t>, float) {});
}

absl::Status SbcCodec::AddDecoded(absl::string_view message, float sign, absl::Span<float> accumulator) const {
  if (accumulator.size() != static_cast<size_t>(layout_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the accumulator has ", accumulator.size(), " elements, the model ", layout_.size()));
  }
  return ForEachRun(message, [sign, accumulator](absl::Span<const uint32_t> positions, float value) {
    const float term = sign * value;
    for (uint32_t position : positions) accumulator[position] += term;
  });
}

absl::StatusOr<absl::optional<std::vector<uint32_t>>> SbcCodec::SentPositions(absl::string_view message) const {
  std::vector<uint32_t> sent;
  TERSE_RETURN_IF_ERROR(ForEachRun(message, [&sent](absl::Span<const uint32_t> positions, float) {
    sent.insert(sent.end(), positions.begin(), positions.end());
  }));
  return absl::make_optional(std::move(sent));
}

}  // namespace terse
