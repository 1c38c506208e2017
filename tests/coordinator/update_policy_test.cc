// Which updates of a round are refused, against figures worked out by hand.
#include "coordinator/update_policy.h"

#include <string>
#include <vector>

#include "compression/codec_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Vector = std::vector<float>;

std::vector<Judgement> JudgedWith(const UpdatePolicy& policy, const std::vector<Vector>& updates, const Layout& layout,
                                  const std::vector<double>& earlier = {}, const std::vector<int64_t>& folded = {}) {
  CodecSpec spec;
  spec.name = "top_k";
  spec.density = 1;
  const auto codec = *MakeCodec(spec, layout);
  std::vector<std::string> messages;
  for (const Vector& update : updates) messages.push_back(*codec->Encode(update));
  std::vector<MeasuredUpdate> measured;
  for (size_t i = 0; i < messages.size(); ++i) {
    measured.push_back({messages[i], *codec->Measure(messages[i]), folded.empty() ? 0 : folded[i]});
  }
  return *JudgeUpdates(*codec, measured, policy, earlier);
}

const Layout& Three() {
  static const Layout* const layout = new Layout(*Layout::Create({{"a", {3}}}));
  return *layout;
}

std::vector<std::string> Judged(const UpdatePolicy& policy, const std::vector<Vector>& updates,
                                const Layout& layout = Three()) {
  std::vector<std::string> reasons;
  for (const Judgement& one : JudgedWith(policy, updates, layout)) reasons.push_back(one.reason);
  return reasons;
}

// Without the check that is on by default.
UpdatePolicy Plain() {
  UpdatePolicy policy;
  policy.norm_ratio = 0;
  return policy;
}

// Indexes of those that are refused.
std::vector<size_t> Refused(const UpdatePolicy& policy, const std::vector<Vector>& updates) {
  const std::vector<std::string> reasons = Judged(policy, updates);
  std::vector<size_t> refused;
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (!reasons[i].empty()) refused.push_back(i);
  }
  return refused;
}

using Indexes = std::vector<size_t>;

TEST(UpdatePolicy, RefusesNothingByItself) {
  EXPECT_FALSE(Plain().is_strict());
  EXPECT_THAT(Refused(Plain(), {{1e15f, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), IsEmpty());
}

TEST(UpdatePolicy, ElementsBeyondAnyAverageAreRefusedAlways) {
  const std::vector<Judgement> judged = JudgedWith(Plain(), {{0, -3e38f, 0}, {1, 0, 0}}, Three());
  EXPECT_THAT(judged[0].reason, HasSubstr("it has an element of 3e+38, and no update may have one beyond 1e+15"));
  EXPECT_TRUE(judged[0].grave);
  EXPECT_EQ(judged[1].reason, "");
  // Also one of a buffer, which no norm counts.
  const Layout layout = *Layout::Create({{"a", {1}}, {"running", {2}, TensorKind::kBuffer}});
  EXPECT_TRUE(JudgedWith(Plain(), {{1, 0, 2e15f}}, layout)[0].grave);
  EXPECT_EQ(JudgedWith({}, {{1, 0, 1e9f}, {1, 0, 0}, {1, 0, 0}}, layout)[0].reason, "");
}

// The median of 1, 2, 2 and 30 is 2.
TEST(UpdatePolicy, RatiosAreToTheRoundsMedianByDefault) {
  const std::vector<Vector> updates = {{1, 0, 0}, {0, 2, 0}, {2, 0, 0}, {0, 0, -30}};
  const std::vector<Judgement> judged = JudgedWith({}, updates, Three());
  EXPECT_EQ(judged[3].reason,
            "its norm of 30 is 15 times the median of the round's, which is 2; policy.norm_ratio = 8 allows 8 times");
  EXPECT_TRUE(judged[3].grave);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(judged[i].reason, "") << i;
  UpdatePolicy policy;
  policy.norm_ratio = 15;
  EXPECT_THAT(Refused(policy, updates), IsEmpty()) << "inclusive";
  EXPECT_THAT(Refused(Plain(), updates), IsEmpty()) << "off";
  EXPECT_THAT(Refused({}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {1, 0, 0}}), IsEmpty()) << "most sent nothing";
  // An update that an earlier check refused does not count: without 3e38 the median of 1, 2 and 17 is 2.
  EXPECT_EQ(Refused({}, {{3e38f, 0, 0}, {1, 0, 0}, {2, 0, 0}, {17, 0, 0}}), (Indexes{0, 3}));
}

TEST(UpdatePolicy, SmallRoundsAreComparedWithWhatOthersSentLast) {
  const std::vector<Vector> two = {{1, 0, 0}, {100, 0, 0}};
  EXPECT_THAT(Refused({}, two), IsEmpty()) << "nobody knows which is hostile";
  const std::vector<Judgement> judged = JudgedWith({}, two, Three(), {1.5});
  EXPECT_EQ(judged[0].reason, "");
  EXPECT_THAT(judged[1].reason, HasSubstr("66.67 times the median of what clients sent last, which is 1.5"));
  EXPECT_TRUE(JudgedWith({}, {{100, 0, 0}}, Three(), {1, 2})[0].grave);
  EXPECT_EQ(JudgedWith({}, {{100, 0, 0}}, Three(), {2})[0].reason, "");
  // A round of three needs no others.
  EXPECT_EQ(JudgedWith({}, {{100, 0, 0}, {100, 0, 0}, {100, 0, 0}}, Three(), {1, 1, 1, 1})[0].reason, "");
}

TEST(UpdatePolicy, FoldedWorkRaisesWhatIsAllowed) {
  const std::vector<Vector> updates = {{1, 0, 0}, {1, 0, 0}, {30, 0, 0}};
  EXPECT_EQ(JudgedWith({}, updates, Three(), {}, {0, 0, 3})[2].reason, "");
  EXPECT_TRUE(JudgedWith({}, updates, Three(), {}, {0, 0, 2})[2].grave);
  const std::vector<Vector> patient = {{1, 0, 0}, {1, 0, 0}, {33, 0, 0}};
  EXPECT_THAT(JudgedWith({}, patient, Three(), {}, {0, 0, 1000})[2].reason, HasSubstr("allows 32 times"));
}

TEST(UpdatePolicy, TheNormBoundIsInclusive) {
  UpdatePolicy policy = Plain();
  policy.norm_bound = 5;
  EXPECT_TRUE(policy.is_strict());
  EXPECT_EQ(Refused(policy, {{3, 4, 0}, {3, 4, 0.01f}, {-5, 0, 0}, {0, -6, 0}}), (Indexes{1, 3}));
  EXPECT_EQ(Judged(policy, {{0, -6, 0}})[0], "its norm of 6 is above policy.norm_bound = 5");
  EXPECT_EQ(Refused(policy, {{0, 9e14f, 9e14f}}), (Indexes{0}));
}

// Norms 8, 9, 10, 11, 12 and 17: the median is 10.5, the distances 2.5, 1.5, 0.5, 0.5, 1.5 and 6.5, their median 1.5, a
// deviation 2.2239 and the last one's score 2.923.
TEST(UpdatePolicy, ScoresAreInDeviationsAboveTheMedian) {
  const std::vector<Vector> updates = {{8, 0, 0}, {0, 9, 0}, {10, 0, 0}, {0, 0, -11}, {0, 12, 0}, {17, 0, 0}};
  UpdatePolicy policy = Plain();
  policy.z_score = 2.9;
  EXPECT_EQ(Refused(policy, updates), (Indexes{5}));
  EXPECT_THAT(Judged(policy, updates)[5],
              HasSubstr("its norm of 17 is 2.923 deviations above the round's median of 10.5, more than "
                        "policy.z_score = 2.9"));
  policy.z_score = 2.95;
  EXPECT_THAT(Refused(policy, updates), IsEmpty());
  policy.z_score = 0.5;
  EXPECT_EQ(Refused(policy, updates), (Indexes{4, 5})) << "small ones are welcome";
}

TEST(UpdatePolicy, ScoresNeedThreeUpdatesAndSomeSpread) {
  UpdatePolicy policy = Plain();
  policy.z_score = 3;
  EXPECT_THAT(Refused(policy, {{1, 0, 0}, {1000, 0, 0}}), IsEmpty());
  EXPECT_EQ(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {1000, 0, 0}}), (Indexes{2}));
  // A deviation is a hundredth of the median at least: 1.02 is within 3 of them, 1.04 is not.
  EXPECT_THAT(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}, {1.02f, 0, 0}}), IsEmpty());
  EXPECT_EQ(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}, {1.04f, 0, 0}}), (Indexes{3}));
  EXPECT_THAT(Refused(policy, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {1, 0, 0}}), IsEmpty()) << "most sent nothing";
}

// Directions x, x and (-3, 4, 0) / 5: the first's others sum to (0.4, 0.8, 0), and the last one's to (2, 0, 0).
TEST(UpdatePolicy, CosinesAreToTheOthersDirections) {
  const std::vector<Vector> updates = {{1, 0, 0}, {100, 0, 0}, {-3, 4, 0}};
  UpdatePolicy policy = Plain();
  policy.cosine = -0.61;
  EXPECT_THAT(Refused(policy, updates), IsEmpty());
  policy.cosine = -0.59;
  EXPECT_EQ(Refused(policy, updates), (Indexes{2}));
  EXPECT_EQ(Judged(policy, updates)[2], "its cosine to the round's other updates is -0.6, below policy.cosine = -0.59");
  policy.cosine = 0.447;  // 0.4 / sqrt(0.8) is 0.4472
  EXPECT_EQ(Refused(policy, updates), (Indexes{2}));
  policy.cosine = 0.448;
  EXPECT_EQ(Refused(policy, updates), (Indexes{0, 1, 2}));
}

TEST(UpdatePolicy, CosinesNeedThreeUpdatesThatSayAnything) {
  UpdatePolicy policy = Plain();
  policy.cosine = 0.5;
  EXPECT_THAT(Refused(policy, {{1, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), IsEmpty());
  // The first one's others cancel out, and so do the second one's.
  EXPECT_EQ(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), (Indexes{2}));
}

TEST(UpdatePolicy, WhatWasRefusedIsNoMeasureForTheRest) {
  // Without the bound the three large ones are the median.
  const std::vector<Vector> updates = {{1, 0, 0}, {2, 0, 0}, {1.1f, 0, 0}, {99, 0, 0}, {99, 0, 0}, {99, 0, 0}};
  UpdatePolicy policy = Plain();
  policy.z_score = 3;
  EXPECT_THAT(Refused(policy, updates), IsEmpty());
  policy.norm_bound = 50;
  EXPECT_EQ(Refused(policy, updates), (Indexes{1, 3, 4, 5}));
  // A refused direction does not count either.
  policy = UpdatePolicy();
  policy.norm_bound = 50;
  policy.cosine = 0;
  EXPECT_EQ(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {1, 1, 0}, {-99, 0, 0}, {-99, 0, 0}, {-99, 0, 0}, {-99, 0, 0}}),
            (Indexes{3, 4, 5, 6}));
}

TEST(UpdatePolicy, BuffersAreNotLookedAt) {
  const Layout layout = *Layout::Create({{"a", {3}}, {"running", {2}, TensorKind::kBuffer}});
  UpdatePolicy policy = Plain();
  policy.norm_bound = 5;
  EXPECT_EQ(Judged(policy, {{3, 4, 0, 1000, -1000}}, layout)[0], "");
}

}  // namespace
}  // namespace terse
