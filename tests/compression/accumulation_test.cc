#include "compression/accumulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/feedback_table.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Algorithm 4's last line, where error feedback would keep 5 - 4 and -3 + 4.
TEST(Accumulation, ForgetsWhatWasSampledWhole) {
  const auto codec = NewCodec("stc", 0.5, "fp32", MakeLayout({4}));
  Accumulation feedback(codec.get());
  std::vector<float> delta = {1, 5, -3, 0.5};
  EXPECT_THAT(Decode(*codec, *feedback.Compress(&delta, {})), ElementsAre(0, 4, -4, 0));
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, 0, 0.5));
  delta = {1, 0, 0, 2};
  EXPECT_THAT(Decode(*codec, *feedback.Compress(&delta, {})), ElementsAre(2.25, 0, 0, 2.25));
}

TEST(Accumulation, KeepsWhatWasNotApplied) {
  const auto codec = NewCodec("stc", 0.5, "fp32", MakeLayout({4}));
  Accumulation feedback(codec.get());
  std::vector<float> delta = {1, 5, -3, 0.5};
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(false).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 5, -3, 0.5));
}

TEST(Accumulation, IsEmptiedByACodecThatCarriesAll) {
  const auto codec = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  Accumulation feedback(codec.get());
  std::vector<float> delta = {1, 8};
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), Each(0));
}

TEST(Accumulation, ForgetsInEveryVectorOfTheState) {
  const auto codec = NewCodec("stc", 0.5, "fp32", MakeLayout({2}));
  std::vector<float> state = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(ForgetSent(*codec, *codec->Encode({0, 9}), absl::MakeSpan(state)).ok());
  EXPECT_THAT(state, ElementsAre(1, 0, 3, 0, 5, 0));
  EXPECT_EQ(ForgetSent(*codec, "x", absl::MakeSpan(state)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(state, ElementsAre(1, 0, 3, 0, 5, 0));
}

TEST(Accumulation, LeavesBuffersToTheFeedback) {
  const auto codec = NewCodec("stc", 0.5, "fp32", MakeLayout({2, 1}, /*buffers=*/1));
  std::vector<float> state = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(ForgetSent(*codec, *codec->Encode({0, 9, 9}), absl::MakeSpan(state)).ok());
  EXPECT_THAT(state, ElementsAre(1, 0, 3, 4, 0, 6));
}

TEST(Accumulation, IsTheFeedbackOfMcgq) {
  const CodecSpec spec = SparseSpec("mcgq", 0.01);
  const auto codec = *MakeCodec(spec, MakeLayout({4}));
  EXPECT_EQ((*MakeFeedback(spec, codec.get()))->name(), "accumulation");
}

}  // namespace
}  // namespace terse
