#include <string>

#include "tests/fuzz/agreement.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

// Whether the codec's choice depends on nothing but sizes, so that encoding what a message carries gives the message
// again: no two messages that are accepted may then decode to the same update.
bool HasOneMessagePerUpdate(const Codec& codec, const CodecSpec& spec) {
  if (codec.traits().lossless) return true;
  if (spec.positions == "auto") return false;  // its reader does not check that the shortest coder was chosen
  for (const char* name : {"sbc", "stc", "top_k", "fp16", "bf16"}) {
    if (codec.name() == name) return true;
  }
  return false;
}

}  // namespace

void FuzzCodec(const char* row, const uint8_t* data, size_t size) {
  static auto& cases = *new CodecCases(row);
  Input input(data, size);
  const size_t codec_case = input.Byte(), layout = input.Byte();
  const Codec& codec = cases.Pick(codec_case, layout);
  const uint64_t pieces = input.Byte();
  const absl::string_view message = input.Rest();
  const absl::optional<Elements> elements = ReadEveryWay(codec, message, pieces);
  // Encoding takes longer than reading, so it is left out half of the time.
  const bool encode = pieces % 2 == 0 && HasOneMessagePerUpdate(codec, cases.Spec(codec_case));
  if (!elements.has_value() || !encode) return;
  std::vector<float> update(codec.layout().size());
  for (size_t i = 0; i < elements->positions.size(); ++i) update[elements->positions[i]] = elements->values[i];
  const absl::StatusOr<std::string> again = codec.Encode(update);
  Require(again.ok() && *again == message, "encoding what an accepted message carries gives the message");
}

}  // namespace terse
