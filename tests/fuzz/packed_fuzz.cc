#include <string>

#include "compression/simd.h"
#include "tests/fuzz/agreement.h"
#include "tests/fuzz/packed_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr int kMostMessages = 7;
constexpr int kMostSlowMessages = 1;

// The part of a line to a client that its coordinator keeps: the codec and the client's history.
struct End {
  const Codec& codec;
  bool rice;
  UpdateHistory history;
};

// Asking the processor what it has is slow, so only at times.
void CheckOnScalar(const End& end, const std::string& packed, const absl::StatusOr<std::string>& message) {
  Require(UseSimdTarget("scalar").ok(), "there is always a scalar target");
  const absl::StatusOr<std::string> unpacked = end.codec.Unpack(packed, end.history);
  const absl::StatusOr<std::string> repacked = message.ok() ? end.codec.Pack(*message, end.history) : packed;
  Require(UseSimdTarget("").ok(), "the fastest target can be chosen again");
  Require(unpacked == message, "all SIMD targets unpack the same message, or give the same error");
  Require(!message.ok() || end.codec.Pack(*message, end.history) == repacked, "all SIMD targets pack alike");
}

// Checks what compression/FORMAT.md says of the packed form of a good message, and returns that form.
std::string CheckPack(const End& end, const std::string& message) {
  const auto packed = end.codec.Pack(message, end.history);
  Require(packed.ok(), "a good message can be packed");
  Require(end.codec.Unpack(*packed, end.history) == absl::StatusOr<std::string>(message),
          "a packed message is the message to whoever has the same history");
  const auto plain = end.codec.Pack(message, UpdateHistory(*end.codec.PackedLayout()));
  Require(plain.ok(), "a message can be packed without a history");
  const size_t selectors = (end.history.tensors().size() + 7) / 8;
  Require(packed->size() <= plain->size() + selectors, "a tensor costs no more than in Rice's code and one bit");
  if (!end.rice) return *packed;
  Require(plain->size() == message.size(), "without a history, packing changes no length");
  const size_t format = message.size() > 2 && dynamic_cast<const ChoiceCodec*>(&end.codec) != nullptr ? 2 : 0;
  Require(absl::string_view(*plain).substr(format + 1) == absl::string_view(message).substr(format + 1),
          "without a history, packing changes the format byte alone");
  return *packed;
}

// Both ends go on from the message to the same history, whether they kept it in memory or on a disk.
void CheckNextHistory(End end, const std::string& message) {
  auto parsed = UpdateHistory::Parse(*end.codec.PackedLayout(), end.history.Serialize());
  Require(parsed.ok(), "a history can be stored");
  Require(end.codec.AddToHistory(message, &end.history).ok(), "a good message can be added");
  Require(end.codec.AddToHistory(message, &*parsed).ok(), "a good message can be added to what was stored");
  Require(parsed->Serialize() == end.history.Serialize(), "both ends hold the same history");
  CheckPack(end, message);
}

void CheckUnpack(const End& end, const std::string& packed, uint64_t pieces) {
  const absl::StatusOr<std::string> message = end.codec.Unpack(packed, end.history);
  if (pieces % 16 == 0) CheckOnScalar(end, packed, message);
  if (!message.ok()) return RequireRefusal(message.status());
  const bool buffers = end.codec.layout().parameters() < end.codec.layout().size();
  const absl::optional<Elements> elements = ReadEveryWay(end.codec, *message, pieces);
  if (!elements.has_value()) return Require(buffers, "what unpacks is a good message, but for buffers");
  const std::string again = CheckPack(end, *message);
  Require(again.size() <= packed.size(), "nobody packs a message into fewer bytes");
  CheckNextHistory(end, *message);
}

// An end that missed a message, or has one too many, may notice it or not; nothing else happens.
void CheckOtherHistory(const End& end, const std::string& packed) {
  const auto message = end.codec.Unpack(packed, end.history);
  if (!message.ok()) return RequireRefusal(message.status());
  const bool buffers = end.codec.layout().parameters() < end.codec.layout().size();
  Require(end.codec.Validate(*message).ok() || buffers, "what unpacks with another history is a good message");
}

}  // namespace

void FuzzPacked(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new PackedCases();
  Input input(data, size);
  const size_t codec_case = input.Byte(), any_layout = input.Byte() % PackedLayouts().size();
  const size_t layout = any_layout < kQuickLayouts || size > kShortPacked ? any_layout : 0;
  const PackedCase picked = cases.Pick(codec_case, layout);
  const uint8_t flags = input.Byte();
  const uint64_t pieces = input.Byte();
  const int count = input.Byte() % (1 + (layout < kQuickLayouts ? kMostMessages : kMostSlowMessages));
  const size_t step = input.Byte();
  const absl::string_view pattern = input.Take(input.Byte());
  PackedMessages messages(*picked.codec, pattern, step, (flags & 4) != 0);
  const End end = {*picked.codec, picked.rice, messages.History(count)};
  std::string packed;
  if ((flags & 1) == 0) {
    packed = std::string(input.Rest());
  } else {
    const std::string message = messages.Next();
    packed = CheckPack(end, message);
    Edit(&input, &packed);
  }
  CheckUnpack(end, packed, pieces);
  if ((flags & 2) == 0) return;
  End other = end;
  Require(other.codec.AddToHistory(messages.Next(), &other.history).ok(), "every message can be added to a history");
  CheckOtherHistory(other, packed);
}

}  // namespace terse
