#include "compression/strom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compression/error_feedback.h"
#include "tests/compression/updates.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CodecSpec Spec(double threshold) {
  CodecSpec spec = SparseSpec("strom", 0.01);
  spec.threshold = threshold;
  return spec;
}

TEST(Strom, SendsTheExampleInItsHeader) {
  const auto codec = *MakeCodec(Spec(1), MakeLayout({4}));
  const std::string message = *codec->Encode({0.5, -1, 3, -0.99f});
  EXPECT_THAT(Decode(*codec, message), ElementsAre(0, -1, 1, 0));
  // A count of 2 in three bits, the signs, and Rice's positions 1 and 2 (b = 0): 1 then 0 zeros.
  EXPECT_EQ(message, std::string("\x09\xca", 2));
  EXPECT_EQ(*codec->CostBits({0.5, -1, 3, -0.99f}), 3 + 2 + 3);
}

TEST(Strom, SendsALargeElementUntilItIsUsedUp) {
  const auto codec = *MakeCodec(Spec(1), MakeLayout({2}));
  ErrorFeedback feedback(codec.get());
  std::vector<float> sent;
  for (int round = 0; round < 5; ++round) {
    std::vector<float> delta = {round == 0 ? -3.5f : 0.0f, 0.25f};
    sent = Decode(*codec, *feedback.Compress(&delta, {}));
    EXPECT_EQ(sent[0], round < 3 ? -1.0f : 0.0f) << round;
    EXPECT_EQ(sent[1], round == 3 ? 1.0f : 0.0f) << round;
    ASSERT_TRUE(feedback.Settle(true).ok());
  }
  EXPECT_THAT(feedback.dense(), ElementsAre(-0.5, 0.25));
}

TEST(Strom, SendsNothingBelowTheThreshold) {
  const auto codec = *MakeCodec(Spec(1), MakeLayout({3, 1}));
  const std::string message = *codec->Encode({0.5, -0.5, 0, 0.9f});
  EXPECT_EQ(message, std::string("\x09\x00", 2));
  EXPECT_THAT(Decode(*codec, message), ElementsAre(0, 0, 0, 0));
}

TEST(Strom, KnowsTheWholeRangeOfFloat32) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  const float largest = std::numeric_limits<float>::max();
  const auto tiny = *MakeCodec(Spec(smallest), MakeLayout({3}));
  EXPECT_THAT(Decode(*tiny, *tiny->Encode({-largest, 0, smallest})), ElementsAre(-smallest, 0, smallest));
  const auto huge = *MakeCodec(Spec(largest), MakeLayout({3}));
  EXPECT_THAT(Decode(*huge, *huge->Encode({-largest, largest, 1})), ElementsAre(-largest, largest, 0));
}

TEST(Strom, RefusesAThresholdThatIsNoPositiveFloat32) {
  for (double threshold : {0.0, -1.0, 1e-60, 1e39, std::nan("")}) {
    EXPECT_THAT(MakeCodec(Spec(threshold), MakeLayout({4})).status().message(), HasSubstr("codec.threshold"));
  }
}

TEST(Strom, RefusesWhatIsNotFinite) {
  const auto codec = *MakeCodec(Spec(1), MakeLayout({2, 2}));
  EXPECT_THAT(codec->Encode({0, 0, 0, std::nanf("")}).status().message(), HasSubstr("'t1', index 1"));
}

}  // namespace
}  // namespace terse
