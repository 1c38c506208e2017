#include <memory>
#include <string>
#include <vector>

#include "compression/downstream.h"
#include "compression/downstream_model.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

int64_t CountOf(absl::string_view message) {
  const auto forwarded = ParseForwarded(message);
  return forwarded.ok() ? static_cast<int64_t>(forwarded->updates.size()) : 1;
}

// Building the message again from what was applied gives the same bytes. For a coded message only the codec can tell.
void CheckOneForm(const Codec& codec, absl::string_view message, const std::vector<float>& average) {
  Require(static_cast<int64_t>(message.size()) <= MaxDownstreamBytes({codec, &codec}, CountOf(message)),
          "no message is above MaxDownstreamBytes");
  if (message[0] == '\x84') {
    return Require(BuildCodedDownstream(message.substr(1)) == message && codec.Validate(message.substr(1)).ok(),
                   "a coded message is its codec's behind one byte");
  }
  if (message[0] == '\x89') {
    // The code words need not be the shortest; what is built again says the same, and is one of two forms.
    std::vector<float> weights(average.size(), 0.0f), step;
    const std::string built = BuildStepDownstream(DownstreamMode::kAuto, average);
    Require(IsStepDownstream(built) && built.size() <= 1 + 4 * average.size(), "a step is no longer than float32");
    Require(ApplyDownstream({codec, &codec}, built, &step, absl::MakeSpan(weights)).ok() &&
                FloatsAsBits(step) == FloatsAsBits(average),
            "a step that was read is the one that is built again");
    return;
  }
  const auto forwarded = ParseForwarded(message);
  const std::string again = forwarded.ok()
                                ? BuildDownstream(DownstreamMode::kForward, forwarded->updates, forwarded->samples,
                                                  average, forwarded->total, forwarded->trust)
                                : BuildDownstream(DownstreamMode::kDense, {}, {}, average);
  Require(again == message, "an applied message is the one that BuildDownstream makes");
}

// Reads the bytes as a message of a run with epochs: none is both a step and a model.
void FuzzModel(const Codec& codec, absl::string_view message, bool is_step) {
  const std::vector<float> snapshot(codec.layout().size(), 0.5f), before(codec.layout().size(), 0.75f);
  std::vector<float> weights = before, again = snapshot, scratch;
  const absl::Status status = ApplyModel({codec, &codec}, message, snapshot, &scratch, absl::MakeSpan(weights));
  if (!status.ok()) {
    Require(status.code() == absl::StatusCode::kInvalidArgument, "bad bytes are an INVALID_ARGUMENT");
    Require(FloatsAsBits(weights) == FloatsAsBits(before), "bad bytes leave the weights unchanged");
    return;
  }
  Require(!is_step, "a model is no step");
  Require(AllFinite(weights), "a model is finite");
  Require(ApplyModel({codec, &codec}, message, snapshot, &scratch, absl::MakeSpan(again)).ok() &&
              FloatsAsBits(again) == FloatsAsBits(weights),
          "a model is the same whatever was held before");
  Require(static_cast<int64_t>(message.size()) <= MaxDownstreamBytes({codec, &codec}, 1),
          "no message is above MaxDownstreamBytes");
  const absl::string_view body = message.substr(1);
  const std::string rebuilt = message[0] == '\x86'   ? BuildModelDownstream(weights)
                              : message[0] == '\x87' ? BuildCodedModelDownstream(body)
                                                     : BuildCenteredModelDownstream(body);
  Require(rebuilt == message, "a model is the message that its builder makes");
}

}  // namespace

void FuzzDownstream(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new CodecCases("");
  Input input(data, size);
  const Codec& codec = cases.Pick(input.Byte(), 0);
  const absl::string_view message = input.Rest();
  const std::vector<float> before(codec.layout().size(), 0.75f);
  std::vector<float> weights = before;
  std::vector<float> average;
  const absl::Status status = ApplyDownstream({codec, &codec}, message, &average, absl::MakeSpan(weights));
  FuzzModel(codec, message, status.ok());
  if (!status.ok()) {
    Require(status.code() == absl::StatusCode::kInvalidArgument, "bad bytes are an INVALID_ARGUMENT");
    Require(FloatsAsBits(weights) == FloatsAsBits(before), "bad bytes leave the weights unchanged");
    return;
  }
  Require(average.size() == before.size() && AllFinite(average), "an average is finite and as long as the model");
  for (size_t i = 0; i < before.size(); ++i) {
    Require(FloatBits(weights[i]) == FloatBits(before[i] + average[i]), "the average was added");
  }
  CheckOneForm(codec, message, average);
}

}  // namespace terse
