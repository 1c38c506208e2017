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

std::vector<std::string> Judged(const UpdatePolicy& policy, const std::vector<Vector>& updates,
                                const Layout& layout = *Layout::Create({{"a", {3}}})) {
  CodecSpec spec;
  spec.name = "top_k";
  spec.density = 1;
  const auto codec = *MakeCodec(spec, layout);
  std::vector<std::string> messages;
  for (const Vector& update : updates) messages.push_back(*codec->Encode(update));
  const std::vector<absl::string_view> views(messages.begin(), messages.end());
  return *JudgeUpdates(*codec, views, policy);
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
  EXPECT_FALSE(UpdatePolicy().refuses());
  EXPECT_THAT(Refused({}, {{1e30f, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), IsEmpty());
}

TEST(UpdatePolicy, TheNormBoundIsInclusive) {
  UpdatePolicy policy;
  policy.norm_bound = 5;
  EXPECT_TRUE(policy.refuses());
  EXPECT_EQ(Refused(policy, {{3, 4, 0}, {3, 4, 0.01f}, {-5, 0, 0}, {0, -6, 0}}), (Indexes{1, 3}));
  EXPECT_EQ(Judged(policy, {{0, -6, 0}})[0], "its norm of 6 is above policy.norm_bound = 5");
  // Where single squares overflow a float.
  EXPECT_EQ(Refused(policy, {{1e30f, 0, 0}}), (Indexes{0}));
}

// Norms 8, 9, 10, 11, 12 and 17: the median is 10.5, the distances 2.5, 1.5, 0.5, 0.5, 1.5 and 6.5, their median 1.5, a
// deviation 2.2239 and the last one's score 2.923.
TEST(UpdatePolicy, ScoresAreInDeviationsAboveTheMedian) {
  const std::vector<Vector> updates = {{8, 0, 0}, {0, 9, 0}, {10, 0, 0}, {0, 0, -11}, {0, 12, 0}, {17, 0, 0}};
  UpdatePolicy policy;
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
  UpdatePolicy policy;
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
  UpdatePolicy policy;
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
  UpdatePolicy policy;
  policy.cosine = 0.5;
  EXPECT_THAT(Refused(policy, {{1, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), IsEmpty());
  // The first one's others cancel out, and so do the second one's.
  EXPECT_EQ(Refused(policy, {{1, 0, 0}, {1, 0, 0}, {-1, 0, 0}, {0, 0, 0}}), (Indexes{2}));
}

TEST(UpdatePolicy, WhatWasRefusedIsNoMeasureForTheRest) {
  // Without the bound the three large ones are the median.
  const std::vector<Vector> updates = {{1, 0, 0}, {2, 0, 0}, {1.1f, 0, 0}, {99, 0, 0}, {99, 0, 0}, {99, 0, 0}};
  UpdatePolicy policy;
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
  UpdatePolicy policy;
  policy.norm_bound = 5;
  EXPECT_EQ(Judged(policy, {{3, 4, 0, 1000, -1000}}, layout)[0], "");
}

}  // namespace
}  // namespace terse
