#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "compression/aggregate.h"
#include "compression/bundle.h"
#include "compression/downstream.h"
#include "coordinator/engine.h"
#include "coordinator/message_checks.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

// From this case on, the codec is the one that has all the cases as its choices.
constexpr size_t kChoice = 0x8000;

// Adds the update up with itself, plainly and by samples, as a round does, and applies the result as a client does.
void CheckRound(const Codec& codec, absl::string_view message, const std::vector<int64_t>& samples) {
  const std::vector<absl::string_view> messages(samples.empty() ? 1 : samples.size(), message);
  std::vector<float> average(codec.layout().size());
  const absl::Status added =
      AverageUpdates(codec, messages, AveragingWeights(samples), /*threads=*/1, absl::MakeSpan(average));
  // Two of the largest numbers have no sum.
  if (!added.ok() && messages.size() > 1)
    return Require(absl::IsInvalidArgument(added), "a sum that overflows is named");
  Require(added.ok() && AllFinite(average), "an accepted update can be added up");
  std::vector<float> weights(average.size());
  for (const DownstreamMode mode : {DownstreamMode::kForward, DownstreamMode::kDense, DownstreamMode::kAuto}) {
    const std::string downstream = BuildDownstream(mode, messages, samples, average);
    const int64_t most = MaxDownstreamBytes(codec, static_cast<int64_t>(messages.size()));
    Require(static_cast<int64_t>(downstream.size()) <= most, "a client accepts the downstream message's size");
    std::vector<float> scratch;
    Require(ApplyDownstream(codec, downstream, &scratch, absl::MakeSpan(weights)).ok() || !AllFinite(weights),
            "a client applies what the coordinator added up");
    Require(FloatsAsBits(scratch) == FloatsAsBits(average), "both ends hold the same average");
  }
}

bool HasSoundHeader(const Update& update) {
  return update.round >= 1 && update.train_us >= 0 && IsFinite(update.loss) && !update.update_id.IsZero();
}

// The same bytes as the update of a relay, which may be a bundle.
void CheckRelays(const Codec& codec, Update update) {
  const absl::StatusOr<std::vector<BundledUpdate>> parts = ParseBundle(update.message);
  update.cohort = {1, 1};
  bool sound = parts.ok() || (!IsBundle(update.message) && codec.Validate(update.message).ok());
  if (parts.ok()) {
    Require(BuildBundle(*parts).value() == update.message, "a bundle has one form");
    update.cohort = CohortOf(*parts);
    for (const BundledUpdate& part : *parts) sound = sound && codec.Validate(part.message).ok();
  }
  const absl::Status status = ValidateMessage(codec, FromClient(update));
  Require(status.ok() == (HasSoundHeader(update) && sound), "what is in a bundle is validated");
}

}  // namespace

void FuzzUpdate(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new CodecCases("");
  Input input(data, size);
  const size_t codec_case = input.Word16(), layout = input.Byte();
  const Codec& codec = codec_case < kChoice ? cases.Pick(codec_case, layout) : cases.Choice(layout);
  const int64_t samples = input.Byte();
  Update update;
  update.round = static_cast<int64_t>(input.Word64());
  update.train_us = static_cast<int64_t>(input.Word64());
  update.loss = FloatFromBits(input.Word32());
  const uint8_t flags = input.Byte();
  if ((flags & 1) == 0) update.update_id = Id128{1, 2};
  update.message = std::string(input.Rest());
  if ((flags & 2) != 0) return CheckRelays(codec, std::move(update));

  const absl::Status status = ValidateMessage(codec, FromClient(update));
  Require(status.ok() == (HasSoundHeader(update) && codec.Validate(update.message).ok()),
          "header and message are validated");
  if (!status.ok()) {
    Require(absl::IsInvalidArgument(status) && !status.message().empty(), "a bad update is an INVALID_ARGUMENT");
    return;
  }
  CheckRound(codec, update.message, {});
  if (samples > 0) CheckRound(codec, update.message, {samples, 1, samples});
}

}  // namespace terse
