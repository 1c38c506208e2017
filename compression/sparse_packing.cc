// Packed messages of sparse codecs: the positions coded by a history, everything else bit for bit as it was.
#include <algorithm>
#include <utility>

#include "compression/sparse_reader.h"

namespace terse {
namespace {

constexpr int kPackedFormat = 0x1b;

}  // namespace

// The part of a message that belongs to one tensor.
struct SparseCodec::Part {
  int64_t tensor;
  BitReader head;  // what stands before the positions
  uint64_t head_bits;
  std::vector<uint32_t> positions;
  int side;

  void PutHead(BitWriter* writer) const {
    BitReader from = head;
    for (uint64_t left = head_bits; left > 0;) {
      const int count = static_cast<int>(std::min<uint64_t>(left, 32));
      uint32_t bits = 0;
      from.Get(count, &bits);
      writer->Put(bits, count);
      left -= count;
    }
  }
};

template <typename Visit>
absl::Status SparseCodec::ForEachPart(absl::string_view message, const UpdateHistory* history, Visit visit) const {
  const int number = history == nullptr ? format_.number : kPackedFormat;
  const absl::string_view kind = history == nullptr ? "" : "packed ";
  if (message.empty() || static_cast<uint8_t>(message[0]) != number) {
    return absl::InvalidArgumentError(absl::StrCat("not a ", kind, "message of codec ", name(), " (format ", number,
                                                   "); both ends must use the run's codec"));
  }
  BitReader stream(message.substr(1));
  Part part = {0, stream, 0, {}, 0};
  Reader reader(this, history);
  TERSE_RETURN_IF_ERROR(Annotate(reader.StartMessage(&stream), absl::StrCat(kind, name(), " message")));
  for (const TensorSpec& spec : layout().tensors()) {
    const auto read = [&]() -> absl::Status {
      TERSE_RETURN_IF_ERROR(reader.StartTensor(part.tensor, &stream));
      part.head_bits = stream.position() - part.head.position();
      part.side = reader.side();
      part.positions = {};  // its memory first, before the next is taken
      part.positions.reserve(reader.left());
      DecodedRun run;
      do {
        TERSE_RETURN_IF_ERROR(reader.Next(spec.size, &run));
        part.positions.insert(part.positions.end(), run.positions, run.positions + run.count);
      } while (run.count > 0);
      return reader.FinishTensor(&stream);
    };
    TERSE_RETURN_IF_ERROR(Annotate(read(), absl::StrCat(kind, name(), " message, tensor '", spec.name, "'")));
    visit(part);
    part.head = stream;
    ++part.tensor;
  }
  if (stream.AtPaddedEnd()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kind, name(), " message with bits behind its last element; a message ends with its last tensor"));
}

absl::Status SparseCodec::CheckHistory(const UpdateHistory& history) const {
  const auto fits = [](const TensorSpec& spec, const PositionHistory& tensor) { return spec.size == tensor.size(); };
  const absl::Span<const TensorSpec> tensors = layout().tensors();
  if (std::equal(tensors.begin(), tensors.end(), history.tensors().begin(), history.tensors().end(), fits)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a history of other tensors than those of codec ", name(), "; make it for Codec::PackedLayout"));
}

absl::StatusOr<std::string> SparseCodec::Pack(absl::string_view message, const UpdateHistory& history) const {
  TERSE_RETURN_IF_ERROR(CheckHistory(history));
  std::string packed(1, static_cast<char>(kPackedFormat));
  BitWriter writer(&packed);
  TERSE_RETURN_IF_ERROR(ForEachPart(message, nullptr, [&](const Part& part) {
    part.PutHead(&writer);
    if (part.positions.empty()) return;
    const PositionHistory& of_tensor = history.tensors()[part.tensor];
    SharedCoder(&of_tensor, part.side).Put(part.positions, of_tensor.size(), &writer);
  }));
  writer.Finish();
  return packed;
}

absl::StatusOr<std::string> SparseCodec::Unpack(absl::string_view packed, const UpdateHistory& history) const {
  TERSE_RETURN_IF_ERROR(CheckHistory(history));
  std::string message(1, static_cast<char>(format_.number));
  BitWriter writer(&message);
  TERSE_RETURN_IF_ERROR(ForEachPart(packed, &history, [&](const Part& part) {
    part.PutHead(&writer);
    if (!part.positions.empty()) format_.coder->Put(part.positions, tensor(part.tensor).size, &writer);
  }));
  writer.Finish();
  return message;
}

absl::Status SparseCodec::AddToHistory(absl::string_view message, UpdateHistory* history) const {
  TERSE_RETURN_IF_ERROR(CheckHistory(*history));
  std::vector<Part> parts;
  TERSE_RETURN_IF_ERROR(ForEachPart(message, nullptr, [&](const Part& part) { parts.push_back(part); }));
  for (const Part& part : parts) history->Add(part.tensor, part.positions, part.side);
  return absl::OkStatus();
}

}  // namespace terse
