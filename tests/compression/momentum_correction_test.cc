#include "compression/momentum_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/feedback_table.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Algorithm of section 3.1 and 3.2 on plain vectors, one element a round.
TEST(MomentumCorrection, IsThePapersRecurrence) {
  Random random(51);
  const int64_t size = 200;
  const auto codec = NewCodec("dgc", 0.05, "fp32", MakeLayout({size}));
  MomentumCorrection feedback(codec.get(), 0.9, 0);
  std::vector<float> u(size, 0.0f), v(size, 0.0f);
  for (uint64_t round = 0; round < 60; ++round) {
    std::vector<float> g = RandomUpdate(size, &random);
    for (int64_t i = 0; i < size; ++i) {
      u[i] = 0.9f * u[i] + g[i];
      v[i] = v[i] + u[i];
    }
    const bool applied = round % 7 != 3;
    const std::string message = *feedback.Compress(&g, {1, round, 2});
    EXPECT_EQ(message, *codec->Encode(v));
    ASSERT_TRUE(feedback.Settle(applied).ok());
    const std::vector<float> sent = Decode(*codec, message);
    for (int64_t i = 0; applied && i < size; ++i) {
      if (sent[i] != 0) u[i] = v[i] = 0;
    }
    std::vector<float> state = v;
    state.insert(state.end(), u.begin(), u.end());
    ASSERT_EQ(std::vector<float>(feedback.dense().begin(), feedback.dense().end()), state) << round;
  }
}

// Without anything sent, v after three rounds of g = 1 is the sum of momentum SGD's steps: 1 + 1.5 + 1.75.
TEST(MomentumCorrection, AccumulatesVelocityNotGradients) {
  CodecSpec spec = SparseSpec("strom", 0.01);
  spec.threshold = 1000;
  const auto codec = *MakeCodec(spec, MakeLayout({1}));
  MomentumCorrection feedback(codec.get(), 0.5, 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<float> delta = {1};
    ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
    ASSERT_TRUE(feedback.Settle(true).ok());
  }
  EXPECT_THAT(feedback.dense(), ElementsAre(4.25, 1.75));
}

TEST(MomentumCorrection, ClipsTheDeltaByItsNorm) {
  const auto codec = NewCodec("dgc", 1, "fp32", MakeLayout({1, 1}));
  MomentumCorrection feedback(codec.get(), 0, 2.5);
  std::vector<float> delta = {3, -4};
  EXPECT_THAT(Decode(*codec, *feedback.Compress(&delta, {})), ElementsAre(1.5, -2));
  ASSERT_TRUE(feedback.Settle(true).ok());
  delta = {1.5, -2};  // 2.5 exactly: not above
  EXPECT_THAT(Decode(*codec, *feedback.Compress(&delta, {})), ElementsAre(1.5, -2));
}

TEST(MomentumCorrection, LeavesTheStateAloneWhenADeltaIsRefused) {
  const auto codec = NewCodec("dgc", 0.5, "fp32", MakeLayout({2}));
  MomentumCorrection feedback(codec.get(), 0.5, 0);
  std::vector<float> delta = {1, 8};
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, 1, 0));
  delta = {1, std::nanf("")};
  EXPECT_EQ(feedback.Compress(&delta, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(feedback.dense(), ElementsAre(1, 0, 1, 0));
  EXPECT_FALSE(feedback.pending());
}

TEST(MomentumCorrection, ContinuesFromStoredState) {
  const auto codec = NewCodec("dgc", 0.5, "fp32", MakeLayout({2}));
  MomentumCorrection feedback(codec.get(), 0.5, 0);
  std::vector<float> delta = {1, 8};
  const std::string message = *feedback.Compress(&delta, {});
  const std::vector<float> sealed(feedback.dense().begin(), feedback.dense().end());
  MomentumCorrection settled(codec.get(), 0.5, 0);
  ASSERT_TRUE(settled.Restore(sealed, message, "").ok());
  EXPECT_THAT(settled.dense(), ElementsAre(1, 0, 1, 0));
  MomentumCorrection open(codec.get(), 0.5, 0);
  ASSERT_TRUE(open.Restore(sealed, "", message).ok());
  ASSERT_TRUE(open.Settle(true).ok());
  EXPECT_THAT(open.dense(), ElementsAre(1, 0, 1, 0));
}

TEST(MomentumCorrection, IsEmptiedByACodecThatCarriesAll) {
  const auto codec = NewCodec("dense", 1, "fp32", MakeLayout({2}));
  MomentumCorrection feedback(codec.get(), 0.5, 0);
  std::vector<float> delta = {1, 8};
  ASSERT_TRUE(feedback.Compress(&delta, {}).ok());
  ASSERT_TRUE(feedback.Settle(true).ok());
  EXPECT_THAT(feedback.dense(), Each(0));
}

// Section 3.3: sparsity 75%, 93.75%, 98.4375%, 99.6%, 99.9%, one epoch each.
TEST(WarmUp, FallsAsInThePaper) {
  const double paper[] = {0.25, 0.0625, 0.015625, 0.00390625, 0.001, 0.001};
  for (uint64_t epoch = 0; epoch < 6; ++epoch) {
    EXPECT_EQ(WarmUpDensity(0.001, 4, epoch), paper[epoch]);
    EXPECT_EQ(WarmUpDensity(0.001, 40, 10 * epoch), paper[epoch]);
    EXPECT_EQ(WarmUpDensity(0.001, 40, 10 * epoch + 9), paper[epoch]);
  }
}

TEST(WarmUp, NeverGoesBelowTheRunsDensity) {
  EXPECT_EQ(WarmUpDensity(0.1, 4, 0), 0.25);
  EXPECT_EQ(WarmUpDensity(0.1, 4, 1), 0.1);
  EXPECT_EQ(WarmUpDensity(0.5, 4, 0), 0.5);
  EXPECT_EQ(WarmUpDensity(0.001, 1, 0), 0.25);
  EXPECT_EQ(WarmUpDensity(0.001, 1, 1), 0.001);
  EXPECT_EQ(WarmUpDensity(0.001, 10, ~uint64_t{0}), 0.001);
}

TEST(WarmUp, SetsTheDensityOfDgc) {
  CodecSpec spec = SparseSpec("dgc", 0.01);
  spec.warmup_rounds = 2;
  const auto codec = *MakeCodec(spec, MakeLayout({1000, 100}));
  const auto feedback = *MakeFeedback(spec, codec.get());
  EXPECT_EQ(feedback->name(), "momentum_correction");
  const size_t expected[] = {250 + 25, 16 + 2, 10 + 1};  // 0.25; 0.015625, the third stage; 0.01
  for (uint64_t round = 0; round < 3; ++round) {
    std::vector<float> delta(1100, 1.0f);
    const std::string message = *feedback->Compress(&delta, {1, round, 1});
    EXPECT_EQ((*codec->SentPositions(message))->size(), expected[round]) << round;
    ASSERT_TRUE(feedback->Settle(true).ok());
  }
}

TEST(MomentumCorrection, RefusesAThresholdBelowZero) {
  CodecSpec spec = SparseSpec("dgc", 0.01);
  spec.clip = -1;
  const auto codec = *MakeCodec(spec, MakeLayout({10}));
  EXPECT_THAT(MakeFeedback(spec, codec.get()).status().message(), HasSubstr("codec.clip"));
}

}  // namespace
}  // namespace terse
