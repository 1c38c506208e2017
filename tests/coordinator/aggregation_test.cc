// Rules of aggregation: what each makes of updates that were worked out elsewhere, and what all of them promise.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compression/aggregate.h"
#include "compression/codec_table.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "coordinator/aggregation/closeness.h"
#include "coordinator/aggregation/update_blocks.h"
#include "core/aggregation_facts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_reference.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

using Vector = std::vector<float>;

Layout TwoTensors(int64_t first, int64_t second) { return *Layout::Create({{"a", {first}}, {"b", {second}}}); }

// Updates on their way, as they are: an element of zero is one that was not sent, or with dense a zero that was.
class Updates {
 public:
  Updates(const Layout& layout, const std::vector<Vector>& updates, const std::string& codec = "top_k") {
    CodecSpec spec;
    spec.name = codec;
    spec.density = 1;
    codec_ = *MakeCodec(spec, layout);
    for (const Vector& update : updates) messages_.push_back(*codec_->Encode(update));
    views_.assign(messages_.begin(), messages_.end());
  }

  const Codec& codec() const { return *codec_; }
  absl::Span<const absl::string_view> views() const { return views_; }

  absl::StatusOr<Vector> Aggregate(const AggregationSpec& spec, absl::Span<const float> weights = {}) const {
    const auto rule = MakeAggregationRule(spec);
    if (!rule.ok()) return rule.status();
    Vector step(codec_->layout().size(), std::numeric_limits<float>::quiet_NaN());
    const absl::Status status = (*rule)->Aggregate(*codec_, views_, weights, absl::MakeSpan(step));
    if (!status.ok()) return status;
    return step;
  }

 private:
  std::unique_ptr<const Codec> codec_;
  std::vector<std::string> messages_;
  std::vector<absl::string_view> views_;
};

AggregationSpec RuleOf(const std::string& rule, const std::string& absent = "share", int64_t byzantine = 2) {
  AggregationSpec spec;
  spec.rule = rule;
  spec.absent = absent;
  spec.byzantine = byzantine;
  return spec;
}

std::vector<AggregationSpec> AllSpecs() {
  std::vector<AggregationSpec> specs;
  for (const std::string& rule : AggregationRuleNames()) {
    for (const char* absent : {"share", "skip", "zero"}) specs.push_back(RuleOf(rule, absent));
  }
  return specs;
}

std::string RuleText(const AggregationSpec& spec) { return absl::StrCat(spec.rule, " ", spec.absent); }

// One coordinate, votes in the order of the updates.
float One(const AggregationSpec& spec, const std::vector<float>& votes, const std::string& codec = "top_k") {
  std::vector<Vector> updates;
  for (float vote : votes) updates.push_back({vote, 1});
  return (*Updates(TwoTensors(1, 1), updates, codec).Aggregate(spec))[0];
}

// Random updates whose elements are multiples of 2^-10, so that their sums are exact, about half of them not sent.
std::vector<Vector> RandomUpdates(int64_t count, int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Vector> updates(count, Vector(size));
  for (Vector& update : updates) {
    for (float& value : update) {
      const auto draw = static_cast<int>(random() % 4096) - 2048;
      value = random() % 2 == 0 ? 0.0f : static_cast<float>(draw) / 1024;
    }
  }
  return updates;
}

// tests/golden/make_aggregation_golden.py, independent of this code.
TEST(Aggregation, FollowsTheDefinitionsOfThePapers) {
  std::vector<Vector> updates;
  int rows = 0;
  bool complete = false;  // whether what was read is all updates of a round
  std::ifstream file(InSource("tests/golden/aggregation.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, absent, word;
    words >> first;
    if (first != "update") words >> absent;
    std::vector<double> values;
    while (words >> word) {
      values.push_back(0);
      ASSERT_TRUE(word == "-" || absl::SimpleAtod(word, &values.back())) << line;
    }
    ASSERT_EQ(values.size(), 12) << line;
    if (first == "update") {
      if (complete) updates.clear();
      complete = false;
      updates.emplace_back(values.begin(), values.end());
      continue;
    }
    complete = true;
    const auto step = Updates(TwoTensors(5, 7), updates).Aggregate(RuleOf(first, absent));
    ASSERT_TRUE(step.ok()) << step.status();
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR((*step)[i], values[i], 1e-6) << first << " " << absent << " element " << i;
    }
    ++rows;
  }
  EXPECT_EQ(updates.size(), 11);
  EXPECT_EQ(rows, 3 * 8 + 1);
}

TEST(Aggregation, TheExamplesOfTheHeaders) {
  EXPECT_EQ(One(RuleOf("median"), {1, 5, 100}), 5);
  EXPECT_EQ(One(RuleOf("median"), {1, 5}), 3);
  EXPECT_EQ(One(RuleOf("trimmed_mean"), {-9, 1, 2, 3, 50}), 2);
  EXPECT_EQ(One(RuleOf("krum", "share", 1), {0, 1, 2, 3, 100}), 1);
  const Updates updates(*Layout::Create({{"a", {2}}}), {{2, -2}, {4, 4}, {-6, 0}});
  EXPECT_THAT(*updates.Aggregate(RuleOf("majority_vote", "skip")), ElementsAre(4, 0));
  const Layout pair = *Layout::Create({{"a", {2}}});
  EXPECT_THAT(*Updates(pair, {{2, 0}, {2, 8}}).Aggregate(RuleOf("imputed_mean")), ElementsAre(2, 8));
  EXPECT_THAT(*Updates(pair, {{2, 0}, {-2, 8}}).Aggregate(RuleOf("imputed_mean")), ElementsAre(0, 4));
}

TEST(ImputedMean, TrustsAsFarAsTheTensorsAgree) {
  const auto first_of_b = [](float of_a) {
    return (*Updates(TwoTensors(1, 2), {{1, 3, 0}, {of_a, 3, 8}}).Aggregate(RuleOf("imputed_mean")))[2];
  };
  EXPECT_EQ(first_of_b(1), 8) << "both tensors agree";
  EXPECT_EQ(first_of_b(-1), 4) << "one of two does: as the mean";
  EXPECT_EQ(first_of_b(0), 8) << "a tensor that nobody sent twice says nothing";
  // 2 * 1 * 0.5 / (1 + 0.25) = 0.8; A = 0.9; trust = 0.8.
  EXPECT_FLOAT_EQ(first_of_b(0.5f), 4 * 1.8f);
}

TEST(ImputedMean, GivesOneUpdateAtMostFourTimesItsShare) {
  std::vector<Vector> updates(10, Vector{1, 0, 0});
  for (int i = 0; i < 4; ++i) updates[i][1] = 5;
  updates[0][2] = 10;
  const Vector step = *Updates(*Layout::Create({{"a", {3}}}), updates).Aggregate(RuleOf("imputed_mean"));
  EXPECT_THAT(step, ElementsAre(1, 5, 4));
}

TEST(ImputedMean, IsTheMeanWhereUpdatesDisagree) {
  std::vector<Vector> updates = RandomUpdates(7, 100, 5);
  const std::vector<float> weights = {0.1f, 0.2f, 0.1f, 0.05f, 0.25f, 0.2f, 0.1f};
  const Updates round(TwoTensors(40, 60), updates);
  EXPECT_EQ(*round.Aggregate(RuleOf("imputed_mean")), *round.Aggregate(RuleOf("mean")));
  EXPECT_EQ(*round.Aggregate(RuleOf("imputed_mean"), weights), *round.Aggregate(RuleOf("mean"), weights));
}

// Receivers of forwarded updates compute the step so.
TEST(ImputedMean, IsMadeOfTheUpdatesAndTheTrust) {
  std::vector<Vector> updates = RandomUpdates(70, 300, 5);
  for (Vector& update : updates) {
    for (float& value : update) value = std::abs(value);
  }
  const Updates round(TwoTensors(140, 160), updates);
  std::vector<float> weights;
  for (int i = 1; i <= 70; ++i) weights.push_back(static_cast<float>(i) / 2485);
  for (const std::vector<float>& given : {std::vector<float>(), weights}) {
    Vector step(300), again(300);
    float trust = 0;
    const auto rule = *MakeAggregationRule(RuleOf("imputed_mean"));
    ASSERT_EQ(rule->AggregateToForward(round.codec(), round.views(), given, absl::MakeSpan(step), &trust),
              absl::OkStatus());
    EXPECT_GT(trust, 0.1f);
    EXPECT_LT(trust, 0.9f);
    ASSERT_EQ(ImputeUpdates(round.codec(), round.views(), given, trust, /*threads=*/2, absl::MakeSpan(again)),
              absl::OkStatus());
    EXPECT_EQ(std::memcmp(again.data(), step.data(), sizeof(float) * step.size()), 0);
    EXPECT_NE(step, *round.Aggregate(RuleOf("mean"), given));
  }
}

TEST(ImputedMean, CountsAnUpdateByItsWeight) {
  // The last coordinate was sent by a quarter of all weight, and by one third of the updates.
  const Updates round(*Layout::Create({{"a", {2}}}), {{2, 0}, {2, 0}, {2, 8}});
  const std::vector<float> weights = {0.25f, 0.5f, 0.25f};
  EXPECT_THAT(*round.Aggregate(RuleOf("imputed_mean"), weights), ElementsAre(2, 8));
  // 2 * (0.5 * 0.25 * 2 * 1 * 2) / (0.5 * 0.25 * 2 * (1 + 4)) = 0.8 for both pairs; trust = 0.6.
  const Updates other(*Layout::Create({{"a", {2}}}), {{1, 0}, {0, 0}, {2, 8}});
  const Vector step = *other.Aggregate(RuleOf("imputed_mean"), weights);
  EXPECT_FLOAT_EQ(step[0], 0.75f * (1 + 0.6f));
  EXPECT_FLOAT_EQ(step[1], 2 * (1 + 0.6f * 3));
  EXPECT_THAT(std::string(round.Aggregate(RuleOf("imputed_mean"), {0.5f}).status().message()),
              HasSubstr("1 weights for 3 updates"));
}

// Nine updates, of which first one sent the coordinate, then three.
TEST(Aggregation, WhatACoordinateCountsAsThatWasNotSent) {
  const std::vector<float> alone = {0, 0, 0, 8, 0, 0, 0, 0, 0}, three = {6, 0, 0, 7, 0, 0, 0, 0, 9};
  EXPECT_EQ(One(RuleOf("median", "zero"), alone), 0);
  EXPECT_EQ(One(RuleOf("median", "skip"), alone), 8);
  EXPECT_FLOAT_EQ(One(RuleOf("median", "share"), alone), 8.0f / 9);
  EXPECT_EQ(One(RuleOf("median", "zero"), three), 0);
  EXPECT_EQ(One(RuleOf("median", "skip"), three), 7);
  EXPECT_FLOAT_EQ(One(RuleOf("median", "share"), three), 7.0f * 3 / 9);
  EXPECT_FLOAT_EQ(One(RuleOf("mean"), three), 22.0f / 9);
  EXPECT_EQ(One(RuleOf("majority_vote", "zero"), three), 0);
  // A zero that was sent is a vote.
  EXPECT_EQ(One(RuleOf("median", "skip"), three, "dense"), 0);
}

TEST(Aggregation, TrimsRoundedUpButNeverAll) {
  AggregationSpec spec = RuleOf("trimmed_mean", "skip");
  EXPECT_EQ(One(spec, {1, 3}), 2);
  EXPECT_EQ(One(spec, {1, 2, 30}), 2) << "0.2 of 3 is 1";
  spec.trim = 0;
  EXPECT_EQ(One(spec, {1, 2, 30}), 11);
  spec.trim = 0.5;
  EXPECT_EQ(One(spec, {1, 2, 4, 30}), 3);
  // 0.07 of 100 is 7.000000000000001 in double. Seven of each side are left out, not eight.
  spec.trim = 0.07;
  std::vector<float> votes(100, 1);
  for (int i = 0; i < 8; ++i) votes[i] = 1000;
  EXPECT_FLOAT_EQ(One(spec, votes), (85 * 1.0f + 1000) / 86);
}

TEST(Aggregation, KrumKeepsAsManyAsItIsTold) {
  std::vector<Vector> updates;
  for (float value : {1.0f, 2.0f, 3.0f, 4.0f, 100.0f, 5.0f, 6.0f}) updates.push_back({value, 0});
  const Updates round(TwoTensors(1, 1), updates);
  AggregationSpec spec = RuleOf("multi_krum", "share", 2);
  EXPECT_EQ((*round.Aggregate(spec))[0], 2) << "7 updates less 2 f + 3 are none, so one is kept: the first of four";
  spec.keep = 3;
  EXPECT_EQ((*round.Aggregate(spec))[0], 3);
  spec.keep = 6;
  EXPECT_EQ((*round.Aggregate(spec))[0], 3.5);
}

TEST(Aggregation, TiesGoToTheLowestIndex) {
  // Four pairs of equal updates; every score is zero.
  const std::vector<Vector> updates = {{4, 1}, {4, 1}, {4, 1}, {9, 1}, {9, 1}, {9, 1}, {9, 1}};
  EXPECT_EQ((*Updates(TwoTensors(1, 1), {{4, 1}, {9, 1}, {4, 1}, {9, 1}}).Aggregate(RuleOf("krum", "share", 0)))[0], 4);
  EXPECT_EQ((*Updates(TwoTensors(1, 1), {{9, 1}, {4, 1}, {9, 1}, {4, 1}}).Aggregate(RuleOf("krum", "share", 0)))[0], 9);
  EXPECT_EQ((*Updates(TwoTensors(1, 1), updates).Aggregate(RuleOf("krum", "share", 2)))[0], 9);
}

TEST(Aggregation, EqualUpdatesGiveThatUpdate) {
  // One magnitude a tensor, as majority_vote gives; nothing at one position.
  const Vector update = {0.5f, -0.5f, 0, 2, 2, -2, 2};
  for (const AggregationSpec& spec : AllSpecs()) {
    const auto step = Updates(TwoTensors(3, 4), std::vector<Vector>(16, update)).Aggregate(spec);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(*step, update) << RuleText(spec);
  }
}

TEST(Aggregation, TheOrderOfTheUpdatesDoesNotShow) {
  std::vector<Vector> updates = RandomUpdates(13, 100, 7);
  std::mt19937 random(3);
  for (const AggregationSpec& spec : AllSpecs()) {
    const Vector step = *Updates(TwoTensors(40, 60), updates).Aggregate(spec);
    for (int i = 0; i < 5; ++i) {
      std::shuffle(updates.begin(), updates.end(), random);
      const Vector again = *Updates(TwoTensors(40, 60), updates).Aggregate(spec);
      for (size_t k = 0; k < step.size(); ++k) {
        ASSERT_EQ(step[k], again[k]) << RuleText(spec);
        ASSERT_EQ(std::signbit(step[k]), std::signbit(again[k])) << RuleText(spec);
      }
    }
  }
}

// Sent zeros have signs, and whichever comes first must not show in the model.
TEST(Aggregation, NoStepIsTheNegativeZero) {
  for (const AggregationSpec& spec : AllSpecs()) {
    const Updates round(TwoTensors(1, 1), std::vector<Vector>(11, Vector{-0.0f, 1}), "dense");
    const Vector step = *round.Aggregate(spec);
    EXPECT_EQ(step[0], 0) << RuleText(spec);
    EXPECT_FALSE(std::signbit(step[0])) << RuleText(spec);
  }
}

TEST(Aggregation, AFewHostileUpdatesStayWithinTheHonestOnes) {
  const int64_t hostile = 2, honest = 10, size = 30;
  std::vector<Vector> updates(hostile, Vector(size, 1e6f));
  Vector low(size, 1e9f), high(size, -1e9f);
  std::mt19937 random(5);
  for (int64_t i = 0; i < honest; ++i) {
    updates.emplace_back(size);
    for (int64_t k = 0; k < size; ++k) {
      updates.back()[k] = 0.5f + static_cast<float>(random() % 1000) / 1000;
      low[k] = std::min(low[k], updates.back()[k]);
      high[k] = std::max(high[k], updates.back()[k]);
    }
  }
  for (const AggregationSpec& spec : AllSpecs()) {
    const Vector step = *Updates(TwoTensors(10, 20), updates, "dense").Aggregate(spec);
    for (int64_t k = 0; k < size; ++k) {
      if (spec.rule == "mean" || spec.rule == "imputed_mean") {
        EXPECT_GT(step[k], 1e5f) << "what the others are for";
      } else if (spec.rule == "majority_vote") {
        EXPECT_GT(step[k], 0.5f);  // a size of the tensor: within all of its honest ones
        EXPECT_LT(step[k], 1.5f);
      } else {
        EXPECT_GE(step[k], low[k]) << RuleText(spec);
        EXPECT_LE(step[k], high[k]) << RuleText(spec);
      }
    }
  }
}

TEST(Aggregation, NobodysCoordinateStays) {
  for (const AggregationSpec& spec : AllSpecs()) {
    const Vector step = *Updates(TwoTensors(2, 3), std::vector<Vector>(12, Vector(5))).Aggregate(spec);
    EXPECT_THAT(step, Each(Eq(0.0f))) << RuleText(spec);
    for (float value : step) EXPECT_FALSE(std::signbit(value)) << RuleText(spec);
  }
}

// Two blocks and a bit; with 40 updates a block is 26,214 coordinates.
TEST(Aggregation, BlocksDoNotShow) {
  const int64_t size = 60'000;
  const std::vector<Vector> updates = RandomUpdates(40, size, 11);
  const Updates round(TwoTensors(25'000, 35'000), updates);
  const Vector step = *round.Aggregate(RuleOf("median", "skip"));
  for (int64_t k = 0; k < size; ++k) {
    Vector votes;
    for (const Vector& update : updates) {
      if (update[k] != 0) votes.push_back(update[k]);
    }
    std::sort(votes.begin(), votes.end());
    const size_t half = votes.size() / 2;
    const float expected = votes.empty()           ? 0
                           : votes.size() % 2 == 1 ? votes[half]
                                                   : (votes[half - 1] + votes[half]) / 2;
    ASSERT_EQ(step[k], expected) << k;
  }
  const Closeness closeness = *Closeness::Measure(round.codec(), round.views());
  for (size_t i = 0; i < 40; i += 13) {
    for (size_t j = 0; j < 40; ++j) {
      double distance = 0;
      for (int64_t k = 0; k < size; ++k) distance += std::pow(static_cast<double>(updates[i][k]) - updates[j][k], 2);
      ASSERT_EQ(closeness.SquaredDistance(i, j), distance) << i << " " << j;
    }
  }
}

TEST(Aggregation, ReadsEveryCodec) {
  for (const char* name : {"sbc", "stc", "qsgd", "dense", "fp16"}) {
    CodecSpec spec;
    spec.name = name;
    spec.density = 0.1;
    const auto codec = *MakeCodec(spec, TwoTensors(40'000, 700));
    const Vector update = RandomUpdates(1, 40'700, 3)[0];
    const std::string message = *codec->Encode(update);
    Vector expected(40'700), step(40'700);
    ASSERT_EQ(codec->AddDecoded(message, 1, absl::MakeSpan(expected)), absl::OkStatus());
    const std::vector<absl::string_view> views(5, message);
    for (const char* rule : {"median", "krum"}) {
      const auto made = *MakeAggregationRule(RuleOf(rule, "share", 1));
      ASSERT_EQ(made->Aggregate(*codec, views, {}, absl::MakeSpan(step)), absl::OkStatus());
      EXPECT_EQ(step, expected) << name << " " << rule;
    }
  }
}

TEST(Aggregation, BuffersTakeTheRulesValueButNoVote) {
  const Layout layout = *Layout::Create({{"a", {2}}, {"running_mean", {2}, TensorKind::kBuffer}});
  std::vector<Vector> updates(11, Vector{1, 1, 3, 4});
  updates[5] = {1, 1, 1000, -1000};  // no further off than the others, as its parameters are theirs
  for (const AggregationSpec& spec : AllSpecs()) {
    const auto step = Updates(layout, updates).Aggregate(spec);
    if (spec.rule == "majority_vote") {
      EXPECT_THAT(std::string(step.status().message()), HasSubstr("cannot vote on a model's buffers"));
    } else if (spec.rule == "median") {
      EXPECT_THAT(*step, ElementsAre(1, 1, 3, 4)) << RuleText(spec);
    } else {
      EXPECT_TRUE(step.ok()) << RuleText(spec);
    }
  }
  const Updates round(layout, updates);
  EXPECT_EQ((*Closeness::Measure(round.codec(), round.views())).SquaredDistance(0, 5), 0);
}

TEST(Aggregation, TooFewUpdatesAreNoRound) {
  for (const AggregationSpec& spec : AllSpecs()) {
    const int64_t least = LeastUpdates(spec);
    const std::vector<Vector> updates = RandomUpdates(least, 10, 1);
    EXPECT_TRUE(Updates(TwoTensors(4, 6), updates).Aggregate(spec).ok()) << RuleText(spec);
    const auto fewer = Updates(TwoTensors(4, 6), {updates.begin(), updates.end() - 1}).Aggregate(spec);
    EXPECT_EQ(fewer.status().code(), absl::StatusCode::kInvalidArgument) << RuleText(spec);
    if (least == 1) continue;
    EXPECT_THAT(fewer.status().message(), HasSubstr(absl::StrCat("needs ", least, " updates"))) << RuleText(spec);
  }
  EXPECT_EQ(LeastUpdates(RuleOf("krum")), 7);
  EXPECT_EQ(LeastUpdates(RuleOf("bulyan")), 11);
}

TEST(Aggregation, WeightsAreForTheRulesThatTakeThem) {
  const std::vector<Vector> updates = RandomUpdates(11, 10, 1);
  const std::vector<float> weights(11, 1.0f / 11);
  for (const AggregationSpec& spec : AllSpecs()) {
    const auto step = Updates(TwoTensors(4, 6), updates).Aggregate(spec, weights);
    if (FactsOf(spec.rule).takes_weights) {
      EXPECT_TRUE(step.ok());
    } else {
      EXPECT_THAT(std::string(step.status().message()), HasSubstr("counts all updates alike")) << RuleText(spec);
    }
  }
}

TEST(Aggregation, ASumThatOverflowsIsNamed) {
  for (const char* rule : {"mean", "imputed_mean"}) {
    std::vector<Vector> updates(2, Vector(10, 1.0f));
    for (Vector& update : updates) update[7] = 3e38f;
    const auto step = Updates(TwoTensors(4, 6), updates).Aggregate(RuleOf(rule));
    EXPECT_EQ(step.status().code(), absl::StatusCode::kInvalidArgument) << rule;
    EXPECT_THAT(std::string(step.status().message()), HasSubstr("index 3: the sum of the updates overflows")) << rule;
  }
}

TEST(Aggregation, DamagedMessagesAreNamed) {
  const Updates round(TwoTensors(4, 6), RandomUpdates(11, 10, 1));
  std::vector<absl::string_view> views(round.views().begin(), round.views().end());
  views[3].remove_suffix(1);
  Vector step(10);
  for (const AggregationSpec& spec : AllSpecs()) {
    const absl::Status status = (*MakeAggregationRule(spec))->Aggregate(round.codec(), views, {}, absl::MakeSpan(step));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << RuleText(spec);
    EXPECT_THAT(std::string(status.message()), HasSubstr("update 3")) << RuleText(spec);
  }
}

TEST(AggregationTable, TheSchemaKnowsEveryRow) {
  std::string allowed;
  for (const RunConfigKey& key : RunConfigKeys()) {
    if (key.key == "aggregation.rule") allowed = key.allowed;
  }
  EXPECT_EQ(
      allowed,
      "'auto', 'mean', 'median', 'trimmed_mean', 'krum', 'multi_krum', 'bulyan', 'majority_vote' or 'imputed_mean'");
  EXPECT_THAT(AggregationRuleNames(), ElementsAre("mean", "median", "trimmed_mean", "krum", "multi_krum", "bulyan",
                                                  "majority_vote", "imputed_mean"));
  for (const std::string& name : AggregationRuleNames()) EXPECT_EQ((*MakeAggregationRule(RuleOf(name)))->name(), name);
  std::vector<std::string> described;
  for (const AggregationFacts& facts : kAggregationFacts) described.emplace_back(facts.name);
  EXPECT_EQ(described, AggregationRuleNames());
}

TEST(AggregationTable, UnknownNamesAreAnsweredWithTheKnownOnes) {
  EXPECT_THAT(std::string(MakeAggregationRule(RuleOf("mode")).status().message()),
              HasSubstr("'mode'; known ones are mean, median,"));
  EXPECT_THAT(std::string(MakeAggregationRule(RuleOf("median", "none")).status().message()),
              HasSubstr("'none'; known ones are share, skip, zero"));
  AggregationSpec spec = RuleOf("trimmed_mean");
  spec.trim = 0.6;
  EXPECT_FALSE(MakeAggregationRule(spec).ok());
}

}  // namespace
}  // namespace terse
