// The pure policies of the engine: who is drawn, who may join, what ends a run.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "coordinator/limits.h"
#include "coordinator/selection.h"
#include "core/allow_list.h"
#include "core/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Candidate> CandidatesOf(int64_t size) {
  std::vector<Candidate> fleet;
  for (int64_t i = 0; i < size; ++i) fleet.push_back({i, 1, 1});
  return fleet;
}

// Counts how often each client is drawn in `rounds` rounds.
std::map<int64_t, int64_t> Counts(Selection selection, const std::vector<Candidate>& fleet, int64_t count,
                                  int64_t rounds, uint64_t seed = 7) {
  std::map<int64_t, int64_t> counts;
  for (int64_t round = 1; round <= rounds; ++round) {
    for (int64_t client : DrawRanked(selection, fleet, count, seed, round)) ++counts[client];
  }
  return counts;
}

TEST(Selection, AllTakesEveryoneInOrder) {
  EXPECT_THAT(DrawRanked(Selection::kAll, {{4}, {0}, {9}}, 1, 1, 1), ElementsAre(0, 4, 9));
  EXPECT_THAT(DrawRanked(Selection::kAll, {}, 1, 1, 1), IsEmpty());
}

TEST(Selection, TakesAsManyAsAskedForAndThereAre) {
  for (Selection selection : {Selection::kRandom, Selection::kSamples, Selection::kReliability}) {
    for (int64_t count : {-1, 0, 1, 5, 9}) {
      EXPECT_EQ(DrawRanked(selection, CandidatesOf(5), count, 3, 1).size(), std::clamp<int64_t>(count, 0, 5));
    }
  }
}

// The draws as Python computes them from the paper's u^(1/w): they are the same everywhere and for ever, since a change
// would redraw the cohorts of running runs.
TEST(Selection, DrawsAreTheSameOnEveryMachine) {
  std::vector<Candidate> fleet = CandidatesOf(40);
  for (Candidate& candidate : fleet) {
    candidate.samples = 1 + candidate.client * candidate.client;
    candidate.reliability = 1.0 / static_cast<double>(1 + candidate.client);
  }
  EXPECT_THAT(DrawRanked(Selection::kRandom, fleet, 5, 1, 1), ElementsAre(10, 21, 26, 31, 36));
  EXPECT_THAT(DrawRanked(Selection::kSamples, fleet, 5, 1, 1), ElementsAre(26, 30, 31, 33, 36));
  EXPECT_THAT(DrawRanked(Selection::kReliability, fleet, 5, 1, 1), ElementsAre(0, 4, 8, 10, 31));
}

TEST(Selection, TheOrderOfTheCandidatesDoesNotMatter) {
  std::vector<Candidate> fleet = CandidatesOf(30);
  for (Candidate& candidate : fleet) candidate.samples = 1 + candidate.client % 4;
  std::vector<Candidate> reversed(fleet.rbegin(), fleet.rend());
  for (int64_t round = 1; round <= 50; ++round) {
    EXPECT_EQ(DrawRanked(Selection::kSamples, fleet, 7, 5, round),
              DrawRanked(Selection::kSamples, reversed, 7, 5, round));
  }
}

TEST(Selection, WhoIsDrawnIsDrawnFromEverySubset) {
  const std::vector<Candidate> fleet = CandidatesOf(30);
  for (int64_t round = 1; round <= 50; ++round) {
    const std::vector<int64_t> all = DrawRanked(Selection::kRandom, fleet, 6, 5, round);
    std::vector<Candidate> half;
    for (const Candidate& candidate : fleet) {
      if (candidate.client % 2 == 0) half.push_back(candidate);
    }
    const std::vector<int64_t> of_half = DrawRanked(Selection::kRandom, half, 6, 5, round);
    for (int64_t client : all) EXPECT_EQ(std::count(of_half.begin(), of_half.end(), client), client % 2 == 0 ? 1 : 0);
  }
}

TEST(Selection, RoundsAndSeedsDrawAfresh) {
  const std::vector<Candidate> fleet = CandidatesOf(100);
  const std::vector<int64_t> first = DrawRanked(Selection::kRandom, fleet, 10, 1, 1);
  EXPECT_EQ(DrawRanked(Selection::kRandom, fleet, 10, 1, 1), first);
  EXPECT_NE(DrawRanked(Selection::kRandom, fleet, 10, 1, 2), first);
  EXPECT_NE(DrawRanked(Selection::kRandom, fleet, 10, 2, 1), first);
}

// 10 of 50 in 20,000 rounds: 4,000 draws each with a standard deviation of 57.
TEST(Selection, RandomGivesEveryoneTheSameChance) {
  const std::map<int64_t, int64_t> counts = Counts(Selection::kRandom, CandidatesOf(50), 10, 20'000);
  ASSERT_EQ(counts.size(), 50);
  for (const auto& [client, count] : counts) EXPECT_NEAR(count, 4000, 5 * 57) << client;
}

// Two clients of a round are as good as independent: with 10 of 50, two given ones meet in 10/50 * 9/49 of the rounds.
TEST(Selection, PairsMeetAsOftenAsChanceSays) {
  int64_t met = 0;
  for (int64_t round = 1; round <= 20'000; ++round) {
    const std::vector<int64_t> drawn = DrawRanked(Selection::kRandom, CandidatesOf(50), 10, 3, round);
    met += std::count(drawn.begin(), drawn.end(), 3) == 1 && std::count(drawn.begin(), drawn.end(), 4) == 1;
  }
  EXPECT_NEAR(met, 20'000 * 10.0 / 50 * 9 / 49, 5 * 27);
}

// The first draw falls on client i with probability w_i / sum: binomial, five standard deviations.
TEST(Selection, OneDrawFollowsTheWeights) {
  constexpr int64_t kRounds = 40'000;
  std::vector<Candidate> fleet = CandidatesOf(5);
  const double share[] = {0.01, 0.04, 0.15, 0.3, 0.5};
  for (int64_t i = 0; i < 5; ++i) {
    fleet[i].samples = std::llround(share[i] * 600);
    fleet[i].reliability = share[i];
  }
  for (Selection selection : {Selection::kSamples, Selection::kReliability}) {
    std::map<int64_t, int64_t> counts = Counts(selection, fleet, 1, kRounds);
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(counts[i], kRounds * share[i], 5 * std::sqrt(kRounds * share[i] * (1 - share[i]))) << i;
    }
  }
}

// Without replacement: of weights 1, 1, 2 the pairs {0,1}, {0,2}, {1,2} have probabilities 1/6, 5/12, 5/12.
TEST(Selection, TwoDrawsFollowTheWeightsThatAreLeft) {
  constexpr int64_t kRounds = 40'000;
  const std::vector<Candidate> fleet = {{0, 1, 1}, {1, 1, 1}, {2, 2, 1}};
  std::map<std::vector<int64_t>, int64_t> pairs;
  for (int64_t round = 1; round <= kRounds; ++round) ++pairs[DrawRanked(Selection::kSamples, fleet, 2, 11, round)];
  EXPECT_NEAR((pairs[{0, 1}]), kRounds / 6.0, 5 * std::sqrt(kRounds * 5.0 / 36));
  EXPECT_NEAR((pairs[{0, 2}]), kRounds * 5 / 12.0, 5 * std::sqrt(kRounds * 35.0 / 144));
  EXPECT_NEAR((pairs[{1, 2}]), kRounds * 5 / 12.0, 5 * std::sqrt(kRounds * 35.0 / 144));
}

Lottery LotteryOf(Selection selection, const std::vector<Candidate>& fleet, int64_t clients, int64_t* asked) {
  Lottery lottery;
  lottery.selection = selection;
  lottery.clients = clients;
  lottery.candidates = static_cast<int64_t>(fleet.size());
  for (const Candidate& one : fleet) lottery.most_samples = std::max(lottery.most_samples, one.samples);
  lottery.candidate = [&fleet, asked](int64_t client) -> absl::optional<Candidate> {
    ++*asked;
    const auto it =
        std::find_if(fleet.begin(), fleet.end(), [&](const Candidate& one) { return one.client == client; });
    return it == fleet.end() ? absl::nullopt : absl::make_optional(*it);
  };
  lottery.all = [&fleet, asked] {
    std::vector<int64_t> clients;
    for (const Candidate& one : fleet) clients.push_back(one.client);
    *asked += static_cast<int64_t>(clients.size());
    return clients;
  };
  return lottery;
}

TEST(Cohort, AllAreTakenWhereNobodyIsDrawn) {
  int64_t asked = 0;
  const std::vector<Candidate> fleet = {{0}, {4}, {9}};
  EXPECT_THAT(DrawCohort(LotteryOf(Selection::kAll, fleet, 10, &asked), 1, 1, 1), ElementsAre(0, 4, 9));
}

TEST(Cohort, TakesAsManyAsAskedForAndThereAre) {
  int64_t asked = 0;
  const std::vector<Candidate> fleet = CandidatesOf(60);
  for (Selection selection : {Selection::kRandom, Selection::kSamples, Selection::kReliability}) {
    for (int64_t count : {-1, 0, 1, 5, 7, 8, 50, 60, 90}) {
      const std::vector<int64_t> drawn = DrawCohort(LotteryOf(selection, fleet, 100, &asked), count, 3, 1);
      EXPECT_EQ(drawn.size(), std::clamp<int64_t>(count, 0, 60)) << count;
      EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
      EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
    }
  }
}

// A cohort of a large fleet costs what the cohort costs, and one of a fleet that works no more than its candidates.
TEST(Cohort, TheCostFollowsTheCohort) {
  int64_t asked = 0;
  const std::vector<Candidate> large = CandidatesOf(20'000);
  DrawCohort(LotteryOf(Selection::kRandom, large, 20'000, &asked), 100, 1, 1);
  EXPECT_LT(asked, 200);
  asked = 0;
  const std::vector<Candidate> few = CandidatesOf(50);
  DrawCohort(LotteryOf(Selection::kRandom, few, 20'000, &asked), 5, 1, 1);
  EXPECT_LE(asked, 3 * 50);
}

// 3 of 40 of which one has ten times the weight of the others, among clients that are no candidates: the frequencies of
// both ways to draw are those of the same distribution, within five standard deviations.
TEST(Cohort, SmallSharesFollowTheWeightsToo) {
  constexpr int64_t kRounds = 20'000;
  std::vector<Candidate> fleet = CandidatesOf(40);
  for (Candidate& one : fleet) {
    one.samples = one.client == 7 ? 10 : 1;
    one.reliability = one.client == 7 ? 1.0 : 0.1;
  }
  for (Selection selection : {Selection::kSamples, Selection::kReliability}) {
    int64_t asked = 0, heavy = 0, light = 0, ranked = 0;
    const Lottery lottery = LotteryOf(selection, fleet, 100, &asked);
    for (int64_t round = 1; round <= kRounds; ++round) {
      for (int64_t client : DrawCohort(lottery, 3, 7, round)) {
        heavy += client == 7;
        light += client == 30;
      }
      for (int64_t client : DrawRanked(selection, fleet, 3, 9, round)) ranked += client == 7;
    }
    EXPECT_NEAR(heavy, ranked, 5 * std::sqrt(2 * kRounds * 0.25));
    EXPECT_NEAR(light, (3.0 * kRounds - static_cast<double>(ranked)) / 39, 5 * std::sqrt(kRounds * 0.065));
  }
}

TEST(Selection, ExtremeWeightsAreHandled) {
  const std::vector<Candidate> huge = {{0, 1, 1}, {1, int64_t{1} << 40, 1}, {2, 1, 1}};
  EXPECT_THAT(Counts(Selection::kSamples, huge, 1, 1000), ElementsAre(::testing::Pair(1, 1000)));
  // No client is shut out for good: the reliability counts as a thousandth at least.
  const std::vector<Candidate> hopeless = {{0, 1, 0}, {1, 1, 1}};
  const std::map<int64_t, int64_t> counts = Counts(Selection::kReliability, hopeless, 1, 40'000);
  EXPECT_GT(counts.at(0), 5);
  EXPECT_LT(counts.at(0), 100);
}

TEST(AllowList, StarsStandForAnyCharacters) {
  const std::pair<const char*, const char*> matches[] = {{"a", "a"},
                                                         {"*", ""},
                                                         {"*", "abc"},
                                                         {"a*", "a"},
                                                         {"a*", "abc"},
                                                         {"*c", "abc"},
                                                         {"a*c", "abc"},
                                                         {"a*c", "ac"},
                                                         {"a*c", "abcbc"},
                                                         {"*b*", "abc"},
                                                         {"a**c", "abc"},
                                                         {"", ""},
                                                         {"*-gpu-*", "lab-gpu-7"},
                                                         {"*ab", "aab"},
                                                         {"a*b*c", "aXbXbXc"},
                                                         {"*aa*ab", "aaaab"}};
  for (const auto& [pattern, name] : matches) EXPECT_TRUE(MatchesPattern(pattern, name)) << pattern << " " << name;
  const std::pair<const char*, const char*> others[] = {
      {"a", "b"},      {"a", "ab"},      {"ab", "a"},   {"", "a"},      {"a*", "ba"},     {"*c", "cb"},
      {"a*c", "abcd"}, {"a*b*c", "acb"}, {"A*", "abc"}, {"a?c", "abc"}, {"*aab", "aaba"}, {"a.c", "abc"}};
  for (const auto& [pattern, name] : others) EXPECT_FALSE(MatchesPattern(pattern, name)) << pattern << " " << name;
}

TEST(AllowList, AnEmptyListAllowsEveryone) {
  EXPECT_TRUE(IsAllowed({}, "anyone"));
  EXPECT_TRUE(IsAllowed({"lab-*", "desk"}, "desk"));
  EXPECT_FALSE(IsAllowed({"lab-*", "desk"}, "desk2"));
}

TEST(Limits, TimeRunsFromTheCreation) {
  RunLimits limits;
  EXPECT_EQ(TimeLimitMicros(limits, 5), std::numeric_limits<int64_t>::max());
  limits.seconds = 2.5;
  EXPECT_EQ(TimeLimitMicros(limits, 1'000'000), 3'500'000);
  EXPECT_EQ(TimeIsUp(limits, 1'000'000, 3'499'999), "");
  EXPECT_EQ(TimeIsUp(limits, 1'000'000, 3'500'000), "the run has used its 2.5 seconds");
}

TEST(Limits, TargetsNameWhatWasReached) {
  EXPECT_EQ(EvaluationLimits(RunLimits()).Take(1, {1.0, 0.0}), "");
  RunLimits targets;
  targets.accuracy = 0.99;
  targets.loss = 0.05;
  EvaluationLimits limits(targets);
  EXPECT_EQ(limits.Take(6, {0.5, 0.06}), "");
  EXPECT_EQ(limits.Take(7, {0.5, 0.0432}), "target loss 0.05 reached: 0.0432 after round 7");
  EXPECT_EQ(limits.Take(8, {std::nan(""), std::nan("")}), "");
  EXPECT_EQ(limits.Take(9, {absl::nullopt, 0.06}), "");
  EXPECT_THAT(limits.Take(10, {absl::nullopt, 0.04}), ::testing::HasSubstr("target loss"));
  EXPECT_EQ(limits.Take(120, {0.9912, 0.5}), "target accuracy 0.99 reached: 0.9912 after round 120");
  EXPECT_EQ(limits.Take(121, {0.9899, 0.5}), "");
}

RunLimits Patient(int64_t patience, PatienceMetric metric, double min_delta) {
  RunLimits limits;
  limits.patience = patience;
  limits.patience_metric = metric;
  limits.min_delta = min_delta;
  return limits;
}

TEST(Limits, PatienceCountsEvaluationsWithoutImprovement) {
  EvaluationLimits limits(Patient(2, PatienceMetric::kAuto, 0.01));
  EXPECT_EQ(limits.Take(10, {0.5, 1.0}), "");
  EXPECT_EQ(limits.Take(20, {0.505, 0.5}), "") << "the loss is not watched where there is an accuracy";
  EXPECT_EQ(limits.Take(30, {0.52, 0.5}), "") << "an improvement on the best, 0.5, begins the count anew";
  EXPECT_EQ(limits.Take(40, {0.4, 0.5}), "");
  EXPECT_EQ(limits.Take(50, {std::nan(""), 0.1}),
            "test accuracy has not improved in 2 evaluations: the best was 0.52 after round 30");
}

TEST(Limits, PatienceWatchesTheLossWhereItIsTold) {
  EvaluationLimits told(Patient(1, PatienceMetric::kLoss, 0));
  EXPECT_EQ(told.Take(1, {0.5, 1.0}), "");
  EXPECT_EQ(told.Take(2, {0.1, 0.9}), "");
  EXPECT_EQ(told.Take(3, {0.9, 0.9}), "test loss has not improved in 1 evaluation: the best was 0.9 after round 2");
  EvaluationLimits no_accuracy(Patient(1, PatienceMetric::kAuto, 0));
  EXPECT_EQ(no_accuracy.Take(1, {absl::nullopt, 1.0}), "");
  EXPECT_THAT(no_accuracy.Take(2, {absl::nullopt, 1.5}), ::testing::HasSubstr("test loss has not improved"));
}

TEST(Limits, PatienceEndsARunWithoutAnyUsableFigure) {
  EvaluationLimits limits(Patient(2, PatienceMetric::kAccuracy, 0));
  EXPECT_EQ(limits.Take(1, {absl::nullopt, 1.0}), "");
  EXPECT_EQ(limits.Take(2, {absl::nullopt, 0.5}), "no usable test accuracy in 2 evaluations");
}

}  // namespace
}  // namespace terse
