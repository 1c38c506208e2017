#include "compression/error_feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(ErrorFeedback, KeepsWhatAMessageDoesNotCarry) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  const auto message = feedback.Compress({1, 8, -2, 0});
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(feedback.pending_message(), *message);
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, -2, 0));
  EXPECT_DOUBLE_EQ(feedback.Norm(), std::sqrt(5.0));
}

TEST(ErrorFeedback, FoldsARefusedUpdateForward) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(feedback.Compress({1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback.Settle(false).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
  ASSERT_TRUE(feedback.Compress({0, 1, 0, 0}).ok());
  EXPECT_THAT(Decode(*codec, feedback.pending_message()), ElementsAre(0, 9, 0, 0));
}

TEST(ErrorFeedback, KeepsItsOrder) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  EXPECT_EQ(feedback.Settle(true).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(feedback.Compress({1, 8, -2, 0}).ok());
  EXPECT_EQ(feedback.Compress({1, 1, 1, 1}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 8, -2, 0));
}

TEST(ErrorFeedback, LeavesTheResidualAloneWhenADeltaIsRefused) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(feedback.Compress({1, 8, -2, 0}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_EQ(feedback.Compress({1, std::nanf(""), 0, 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(feedback.Compress({1, 1}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, -2, 0));
}

TEST(ErrorFeedback, ResetReportsWhatIsLost) {
  const auto codec = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  ErrorFeedback feedback(codec.get());
  ASSERT_TRUE(feedback.Compress({3, -4}).ok());
  EXPECT_DOUBLE_EQ(feedback.Reset(), 5);
  EXPECT_FALSE(feedback.pending());
  EXPECT_THAT(feedback.dense(), Each(0));
}

TEST(ErrorFeedback, RestoresEveryStoredState) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  const std::vector<float> dense = {1, 8, -2, 0};
  const std::string message = *codec->Encode(dense);
  ErrorFeedback idle(codec.get());
  ASSERT_TRUE(idle.Restore(dense, "", "").ok());
  EXPECT_THAT(idle.dense(), ElementsAre(1, 8, -2, 0));
  ErrorFeedback settled(codec.get());
  ASSERT_TRUE(settled.Restore(dense, message, "").ok());
  EXPECT_THAT(settled.dense(), ElementsAre(1, 0, -2, 0));
  EXPECT_FALSE(settled.pending());
  ErrorFeedback sealed(codec.get());
  ASSERT_TRUE(sealed.Restore(dense, "", message).ok());
  EXPECT_TRUE(sealed.pending());
  ASSERT_TRUE(sealed.Settle(true).ok());
  EXPECT_THAT(sealed.dense(), ElementsAre(1, 0, -2, 0));
}

TEST(ErrorFeedback, RefusesStoredStateThatDoesNotFit) {
  const auto codec = NewCodec("sbc", 0.25, "fp32", MakeLayout({4}));
  const std::vector<float> dense = {1, 8, -2, 0};
  const std::string message = *codec->Encode(dense);
  ErrorFeedback feedback(codec.get());
  EXPECT_EQ(feedback.Restore({1, 2}, "", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore({1, 2, 3, std::nanf("")}, "", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, "x", "").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, "", "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(feedback.Restore(dense, message, message).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(feedback.dense(), Each(0));
}

// Equation (2) bit for bit: deltas are multiples of 2^-10 and the means have eight bits, so no float32 operation rounds
// and residual + what was applied is the sum of all deltas.
TEST(ErrorFeedback, LosesNothingOverManyRounds) {
  const Layout layout = MakeLayout({1, 10, 500, 3000});
  for (double density : {0.002, 0.02, 0.3}) {
    const auto codec = NewCodec("sbc", density, "bf16", layout);
    ErrorFeedback feedback(codec.get());
    Random random(static_cast<uint64_t>(1000 * density));
    std::vector<double> given(layout.size()), applied(layout.size());
    for (int round = 0; round < 200; ++round) {
      std::vector<float> delta(layout.size());
      for (size_t i = 0; i < delta.size(); ++i) {
        delta[i] = std::ldexp(static_cast<float>(random.Below(201)) - 100.0f, -10);
        given[i] += delta[i];
      }
      const std::string message = *feedback.Compress(delta);
      const bool verdict = random.Below(3) != 0;
      if (verdict) {
        const std::vector<float> decoded = Decode(*codec, message);
        for (size_t i = 0; i < decoded.size(); ++i) applied[i] += decoded[i];
      }
      ASSERT_TRUE(feedback.Settle(verdict).ok());
    }
    for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ(applied[i] + feedback.dense()[i], given[i]) << i;
  }
}

}  // namespace
}  // namespace terse
