#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/fuzz/packed_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr int kMostMessages = 6;

void CheckMasses(const UpdateHistory& history) {
  for (const PositionHistory& tensor : history.tensors()) {
    std::vector<uint8_t> masses(static_cast<size_t>(tensor.size()));
    for (const int side : {0, 1}) {
      tensor.Masses(side, 0, absl::MakeSpan(masses));
      Require(std::find(masses.begin(), masses.end(), 0) == masses.end(), "every element has a mass");
    }
  }
}

// Whatever the state, both ends that have it understand each other.
void CheckPacking(const Codec& codec, const UpdateHistory& history, const std::string& message) {
  const auto packed = codec.Pack(message, history);
  Require(packed.ok(), "every message can be packed");
  Require(codec.Unpack(*packed, history) == absl::StatusOr<std::string>(message), "what was packed comes out again");
}

// A state from which nothing goes wrong. Only the count of messages, which no run comes near to, can grow too large.
void CheckGoesOn(const Codec& codec, UpdateHistory history, const std::string& message) {
  CheckMasses(history);
  CheckPacking(codec, history, message);
  Require(codec.AddToHistory(message, &history).ok(), "every message can be added to a history");
  CheckMasses(history);
  const std::string bytes = history.Serialize();
  const auto parsed = UpdateHistory::Parse(*codec.PackedLayout(), bytes);
  if (!parsed.ok()) {
    return Require(absl::StrContains(parsed.status().message(), "its counters"), "what a history became can be stored");
  }
  Require(parsed->Serialize() == bytes, "a history has one form");
  CheckPacking(codec, *parsed, message);
}

}  // namespace

void FuzzHistory(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new PackedCases();
  Input input(data, size);
  const size_t codec_case = input.Byte(), layout = input.Byte() % kQuickLayouts;
  const Codec& codec = *cases.Pick(codec_case, layout).codec;
  const uint8_t flags = input.Byte();
  const int count = input.Byte() % kMostMessages;
  const size_t step = input.Byte();
  const absl::string_view pattern = input.Take(input.Byte());
  PackedMessages messages(codec, pattern, step, (flags & 1) != 0);
  std::string bytes = messages.History(count).Serialize();
  const size_t whole = bytes.size();
  if ((flags & 2) != 0) bytes.clear();  // from nothing
  Edit(&input, &bytes);
  const auto history = UpdateHistory::Parse(*codec.PackedLayout(), bytes);
  if (!history.ok()) return RequireRefusal(history.status());
  Require(bytes.size() == whole, "the histories of one layout have one length");
  Require(history->Serialize() == bytes, "a history has one form");
  CheckGoesOn(codec, *history, messages.Next());
}

}  // namespace terse
