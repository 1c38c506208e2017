#include "compression/downstream_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class DownstreamModel : public ::testing::Test {
 protected:
  DownstreamModel() {
    CodecSpec spec;
    spec.name = "low_precision";
    spec.bits = 4;
    coded_ = *MakeCodec(spec, updates_->layout());
    message_ = *coded_->Encode(model_);
  }

  absl::Status Apply(absl::string_view message, absl::Span<const float> snapshot) {
    weights_ = {9, 9, 9, 9};
    return ApplyModel({*updates_, coded_.get()}, message, snapshot, &scratch_, absl::MakeSpan(weights_));
  }
  // Refused with the weights untouched; returns the reason.
  std::string Refusal(absl::string_view message, absl::Span<const float> snapshot) {
    const absl::Status status = Apply(message, snapshot);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(weights_, Each(9));
    return std::string(status.message());
  }

  const std::unique_ptr<const Codec> updates_ = NewCodec("sbc", 0.5, "fp32", MakeLayout({3, 1}));
  std::unique_ptr<const Codec> coded_;
  const std::vector<float> model_ = {1, -7, 0, 3}, snapshot_ = {0.5, 0.25, -1, 2};
  std::string message_;
  std::vector<float> weights_, scratch_;
};

TEST_F(DownstreamModel, IsHeldWhateverWasHeldBefore) {
  ASSERT_EQ(Apply(BuildModelDownstream(model_), {}), absl::OkStatus());
  EXPECT_THAT(weights_, ElementsAreArray(model_));
  ASSERT_EQ(Apply(BuildCodedModelDownstream(message_), {}), absl::OkStatus());
  EXPECT_THAT(weights_, ElementsAre(1, -7, 0, 3));
  ASSERT_EQ(Apply(BuildCenteredModelDownstream(message_), snapshot_), absl::OkStatus());
  EXPECT_THAT(weights_, ElementsAre(1.5, -6.75, -1, 5));
  ASSERT_EQ(Apply(BuildSnapshotDownstream(), snapshot_), absl::OkStatus());
  EXPECT_THAT(weights_, ElementsAreArray(snapshot_));
  EXPECT_EQ(BuildSnapshotDownstream().size(), 1);
}

TEST_F(DownstreamModel, NeedsItsSnapshot) {
  EXPECT_THAT(Refusal(BuildCenteredModelDownstream(message_), {}), HasSubstr("the snapshot 0"));
  EXPECT_THAT(Refusal(BuildSnapshotDownstream(), {1, 2}), HasSubstr("the snapshot 2"));
}

TEST_F(DownstreamModel, RefusesWhatNoCoordinatorSends) {
  for (const std::string& message :
       {BuildModelDownstream(model_), BuildCodedModelDownstream(message_), BuildCenteredModelDownstream(message_)}) {
    for (size_t size = 0; size < message.size(); ++size) {
      if (size == 1 && message[0] == '\x88') continue;  // the flag
      Refusal(message.substr(0, size), snapshot_);
    }
    Refusal(message + std::string(1, '\0'), snapshot_);
    EXPECT_THAT(Refusal("\x84" + message.substr(1), snapshot_), HasSubstr("known format"));
  }
  Refusal("\x88\x16", snapshot_);
  std::vector<float> infinite = model_;
  infinite[3] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Refusal(BuildModelDownstream(infinite), snapshot_), HasSubstr("tensor 't1', index 0"));
}

TEST_F(DownstreamModel, RefusesASumBeyondTheRange) {
  const float most = std::numeric_limits<float>::max();
  const std::string message = *coded_->Encode(std::vector<float>{0, most, 0, 0});
  EXPECT_THAT(Refusal(BuildCenteredModelDownstream(message), {0, most, 0, 0}), HasSubstr("element 1"));
}

TEST_F(DownstreamModel, IsNoStep) {
  std::vector<float> weights(4);
  EXPECT_EQ(ApplyDownstream({*updates_, coded_.get()}, BuildModelDownstream(model_), &scratch_, absl::MakeSpan(weights))
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DownstreamModel, WithoutACodecOnlyWholeModelsAreRead) {
  std::vector<float> weights(4);
  EXPECT_EQ(ApplyModel(*updates_, BuildModelDownstream(model_), {}, &scratch_, absl::MakeSpan(weights)),
            absl::OkStatus());
  EXPECT_EQ(ApplyModel(*updates_, BuildSnapshotDownstream(), snapshot_, &scratch_, absl::MakeSpan(weights)),
            absl::OkStatus());
  EXPECT_EQ(ApplyModel(*updates_, BuildCodedModelDownstream(message_), {}, &scratch_, absl::MakeSpan(weights)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DownstreamModel, IsWithinTheBoundOfAnyMessage) {
  const DownstreamCodecs codecs(*updates_, coded_.get());
  for (const std::string& message :
       {BuildModelDownstream(model_), BuildCodedModelDownstream(message_), BuildCenteredModelDownstream(message_)}) {
    EXPECT_LE(static_cast<int64_t>(message.size()), MaxDownstreamBytes(codecs, 1));
  }
}

}  // namespace
}  // namespace terse
