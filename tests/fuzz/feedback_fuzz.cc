#include <memory>
#include <string>
#include <vector>

#include "compression/feedback.h"
#include "compression/feedback_table.h"
#include "tests/fuzz/codec_cases.h"
#include "tests/fuzz/targets.h"

namespace terse {
namespace {

constexpr CodecKey kKey = {1, 2, 3};

// The state that a client stored, or something else.
struct Stored {
  std::vector<float> dense;
  absl::string_view minus;
  absl::string_view pending;
};

std::unique_ptr<Feedback> NewFeedback(size_t row, CodecSpec spec, const Codec& codec) {
  static const auto& names = *new std::vector<std::string>(FeedbackNames());
  spec.feedback = names[row % names.size()];
  auto feedback = MakeFeedback(spec, &codec);
  Require(feedback.ok(), feedback.status().ToString());
  return *std::move(feedback);
}

bool Fits(const Codec& codec, const Feedback& feedback, const Stored& stored) {
  if (stored.dense.size() != feedback.dense().size() || !AllFinite(stored.dense)) return false;
  if (!stored.minus.empty() && !stored.pending.empty()) return false;
  return (stored.minus.empty() || codec.Validate(stored.minus).ok()) &&
         (stored.pending.empty() || codec.Validate(stored.pending).ok());
}

// A pending update waits for its verdict and can be settled once.
void CheckPending(const Stored& stored, Feedback* feedback) {
  Require(feedback->pending() && feedback->pending_message() == stored.pending, "the pending message was restored");
  Require(FloatsAsBits(feedback->dense()) == FloatsAsBits(stored.dense), "the state was restored");
  std::vector<float> delta(1);
  Require(feedback->Compress(&delta, kKey).status().code() == absl::StatusCode::kFailedPrecondition,
          "nothing is compressed while an update is pending");
  Require(feedback->Settle(true).ok(), "a pending update can be settled");
}

// Reads bytes that an equal feedback has stored, or others.
void CheckObservations(absl::string_view stored, Feedback* feedback) {
  const absl::Status status = feedback->RestoreObservations(stored);
  Require(status.ok() || absl::IsDataLoss(status), "what does not fit is a DATA_LOSS");
  if (status.ok() && feedback->observes()) Require(feedback->Observations() == stored, "observations have one form");
}

// The state goes on as that of any client.
void CheckUsable(const Codec& codec, Feedback* feedback) {
  Require(!feedback->pending(), "no update is pending");
  Require(feedback->Settle(true).code() == absl::StatusCode::kFailedPrecondition, "there is nothing to settle");
  const std::vector<uint32_t> before = FloatsAsBits(feedback->dense());
  std::vector<float> delta(codec.layout().size(), 0.5f);
  const absl::Span<const float> state = feedback->dense().subspan(0, delta.size());
  feedback->Observe(delta, state);
  feedback->Observe(state, delta);
  const absl::StatusOr<std::string> message = feedback->Compress(&delta, kKey);
  if (message.ok()) {
    Require(codec.Validate(*message).ok(), "a message decodes");
    Require(feedback->Settle(true).ok(), "the update can be settled");
  } else {
    Require(message.status().code() == absl::StatusCode::kInvalidArgument, "an overflow is an INVALID_ARGUMENT");
    Require(FloatsAsBits(feedback->dense()) == before, "after an error the state is as before");
  }
  feedback->Reset();
  for (float value : feedback->dense()) Require(value == 0, "Reset zeroes the state");
}

}  // namespace

void FuzzFeedback(const char*, const uint8_t* data, size_t size) {
  static auto& cases = *new CodecCases("");
  Input input(data, size);
  const size_t codec_case = input.Byte();
  const CodecSpec& spec = cases.Spec(codec_case);
  const size_t row = input.Byte();
  const uint8_t flags = input.Byte();
  const Codec& codec = cases.Pick(codec_case, (flags & 16) != 0 ? FuzzLayouts().size() - 1 : 0);
  const std::unique_ptr<Feedback> feedback = NewFeedback(row, spec, codec);
  const absl::string_view pattern = input.Take(input.Word16());
  const absl::string_view message = input.Rest();
  Stored stored;
  stored.dense = Numbers(pattern, feedback->dense().size() + (flags & 1), (flags & 8) != 0);
  if ((flags & 2) != 0) stored.minus = message;
  if ((flags & 4) != 0) stored.pending = message;
  const absl::Status status = feedback->Restore(stored.dense, stored.minus, stored.pending);
  if (!Fits(codec, *feedback, stored)) {
    Require(status.code() == absl::StatusCode::kDataLoss, "what does not fit is a DATA_LOSS");
    return;
  }
  Require(status.ok(), status.ToString());
  if (feedback->pending()) {
    CheckPending(stored, feedback.get());
    const std::unique_ptr<Feedback> settled = NewFeedback(row, spec, codec);
    Require(settled->Restore(stored.dense, stored.pending, {}).ok(), "what can be pending can have been settled");
    Require(FloatsAsBits(settled->dense()) == FloatsAsBits(feedback->dense()), "restoring repeats what settling did");
  }
  if ((flags & 32) != 0) CheckObservations(message, feedback.get());
  CheckUsable(codec, feedback.get());
}

}  // namespace terse
