// Cohorts: who gets work, over-selection, places that are filled, grace, weighting, fleets that drop out.
#include <algorithm>

#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "coordinator/message_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunConfig Cohort(int64_t clients, int64_t cohort, int64_t invited, Selection selection = Selection::kRandom) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.data.partition = "all";  // so that more than `clients` may join
  config.rounds.selection = selection;
  config.rounds.cohort = cohort;
  config.rounds.invited = invited;
  config.rounds.quorum = 1;
  return config;
}

// Two of three close a round at its deadline, after 10 seconds, or within 5 seconds of grace.
RunConfig QuorumWithGrace() {
  RunConfig config = GridRunConfig(3, 10);
  config.rounds.quorum = 2;
  config.rounds.grace_seconds = 5;
  return config;
}

std::vector<int64_t> SortedOut(const std::set<int64_t>& all, const std::set<int64_t>& some) {
  std::vector<int64_t> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
  return rest;
}

TEST(EngineCohort, TheCohortClosesTheRoundAndTheSurplusFoldsForward) {
  Crew crew(Cohort(10, 4, 6), 10);
  const std::set<int64_t> invited = crew.Working(1);
  ASSERT_EQ(invited.size(), 6);
  const std::vector<int64_t> order(invited.begin(), invited.end());
  for (int64_t k = 0; k < 4; ++k) {
    EXPECT_EQ(crew.view().head.version, 0);
    crew.Deliver(order[k], 1);
  }
  EXPECT_EQ(crew.view().head.version, 1);
  for (int64_t k = 4; k < 6; ++k) {
    EXPECT_EQ(crew.StateOf(order[k]), "training");
    crew.Deliver(order[k], 1);
    EXPECT_EQ(crew.at(order[k]).All<Verdict>().at(0).outcome, Outcome::kNotApplied);
    EXPECT_EQ(crew.Record(order[k]).updates_not_applied, 1);
    EXPECT_EQ(crew.Record(order[k]).failures, 0);  // the cohort was full: no fault of theirs
  }
}

TEST(EngineCohort, WhoStillWorksForAnOlderRoundIsNoCandidate) {
  Crew crew(Cohort(6, 2, 6), 6);
  ASSERT_EQ(crew.Working(1).size(), 6);
  crew.Deliver(0, 1);
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().round, 2);
  EXPECT_THAT(crew.Working(2), ElementsAre(0, 1));
  crew.Deliver(4, 1);
  EXPECT_THAT(crew.Working(2), ElementsAre(0, 1, 4));  // with its late update it is free, and there is a place
  const Update again = crew.at(4).MakeUpdate(1, 4, 1);
  ASSERT_EQ(crew.at(4).Say(again), absl::OkStatus());
  EXPECT_EQ(crew.StateOf(4), "training") << "what comes twice does not end the work of the new round";
  ASSERT_EQ(crew.at(5).SayReady(), absl::OkStatus());  // it let its work pass
  EXPECT_THAT(crew.Working(2), ElementsAre(0, 1, 4, 5));
}

TEST(EngineCohort, WhoBecomesReadyLaterFillsThePlaces) {
  Crew crew(Cohort(3, 3, 5), 3);
  EXPECT_THAT(crew.Working(1), ElementsAre(0, 1, 2));
  for (int64_t i = 3; i < 7; ++i) crew.Join(i);
  EXPECT_THAT(crew.Working(1), ElementsAre(0, 1, 2, 3, 4));
}

TEST(EngineCohort, APlaceWhoseClientLeftIsFilled) {
  Crew crew(Cohort(6, 2, 2), 6);
  const std::set<int64_t> invited = crew.Working(1);
  ASSERT_EQ(invited.size(), 2);
  const int64_t stays = *invited.begin(), leaves = *invited.rbegin();
  crew.Leave(leaves);
  const std::vector<int64_t> new_ones = SortedOut(crew.Working(1), invited);
  ASSERT_EQ(new_ones.size(), 1);
  // It comes back without what it began, and gets it again; nobody else does.
  crew.Join(leaves);
  EXPECT_THAT(crew.Working(1), ::testing::UnorderedElementsAre(stays, leaves, new_ones[0]));
}

TEST(EngineCohort, WhoDeliveredHoldsItsPlaceConnectedOrNot) {
  Crew crew(Cohort(6, 3, 3), 6);
  const std::set<int64_t> invited = crew.Working(1);
  ASSERT_EQ(invited.size(), 3);
  crew.Deliver(*invited.begin(), 1);
  crew.Leave(*invited.begin());
  EXPECT_THAT(SortedOut(crew.Working(1), invited), IsEmpty());
}

TEST(EngineCohort, AClientWithAnUpdateUnderWayHoldsItsPlaceAfterARestart) {
  Crew crew(Cohort(4, 2, 2), 4);
  const int64_t owes = *crew.Working(1).begin();
  const Update update = crew.MakeUpdate(owes, 1);
  crew.Restart();
  crew.fleet.store()->fault = nullptr;
  ScriptedClient back(&crew.fleet, absl::StrCat("c", owes), 2001);
  ASSERT_EQ(back.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  ASSERT_EQ(back.SayReady(), absl::OkStatus());
  EXPECT_EQ(back.Count<Assignment>(), 0);
  for (int64_t i = 0; i < 4; ++i) {
    if (i != owes) crew.Join(i);
  }
  EXPECT_EQ(crew.Working(1).size(), 1);
}

TEST(EngineCohort, AllGivesWorkToEveryone) {
  Crew crew(Cohort(2, 2, 2, Selection::kAll), 2);
  crew.Join(2);
  EXPECT_THAT(crew.Working(1), ElementsAre(0, 1, 2));
  crew.Deliver(2, 1);
  crew.Deliver(0, 1);
  EXPECT_EQ(crew.view().head.version, 1);
}

TEST(EngineCohort, SamplesDecideWhoIsDrawn) {
  Crew crew(Cohort(5, 1, 1, Selection::kSamples), 0);
  for (int64_t i = 0; i < 5; ++i) crew.Join(i, i == 3 ? int64_t{1} << 40 : 1);
  for (int64_t round = 1; round <= 20; ++round) {
    EXPECT_THAT(crew.Working(round), ElementsAre(3));
    crew.Deliver(3, round);
  }
}

TEST(EngineCohort, ReliabilityDecidesWhoIsDrawn) {
  Crew crew(Cohort(5, 1, 1, Selection::kReliability), 4);
  for (int64_t i = 0; i < 4; ++i) {
    for (int k = 0; k < 80; ++k) ASSERT_EQ(crew.fleet.store()->RecordFailure(i).status(), absl::OkStatus());
    crew.Join(i);  // the engine looks at the row again
  }
  crew.Join(4);
  int64_t drawn = 0;
  for (int64_t round = 1; round <= 30; ++round) {
    drawn += crew.Working(round).count(4);
    crew.DeliverAll();
  }
  EXPECT_EQ(crew.view().head.version, 30);
  EXPECT_GE(drawn, 28);
}

TEST(EngineCohort, SeedsDrawDifferentCohorts) {
  RunConfig config = Cohort(20, 5, 5);
  config.seed = 1;
  Crew first(config, 20), again(config, 20);
  config.seed = 2;
  Crew other(config, 20);
  EXPECT_EQ(first.Working(1), again.Working(1));
  EXPECT_NE(first.Working(1), other.Working(1));
}

TEST(EngineCohort, TheGraceEndsWithTheUpdateThatCompletesTheQuorum) {
  Crew crew(QuorumWithGrace(), 3);
  crew.Deliver(0, 1);
  EXPECT_DOUBLE_EQ(crew.SecondsToDeadline(), 10);
  crew.Pass(10);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kOpen);
  EXPECT_DOUBLE_EQ(crew.SecondsToDeadline(), 5);
  crew.Deliver(2, 1);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_EQ(crew.Record(1).failures, 1);
  EXPECT_EQ(crew.Record(0).failures + crew.Record(2).failures, 0);
}

// A machine with much to do may ask for the timer when its time has come already. Nobody says anything more.
TEST(EngineCohort, ADeadlineThatPassedUnseenStillComes) {
  Crew crew(QuorumWithGrace(), 3);
  crew.Deliver(0, 1);
  crew.Deliver(2, 1);
  crew.fleet.clock()->Advance(12);  // past the deadline, and not the grace
  EXPECT_LE(crew.SecondsToDeadline(), 0);
  crew.Pass(0);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kCommitted);

  crew.Pass(16);  // nobody delivers for round 2
  ASSERT_EQ(crew.RoundStateOf(2), RoundState::kAborted);
  crew.Deliver(0, 2);
  crew.Deliver(2, 2);
  ASSERT_EQ(crew.view().phase, "waiting for clients") << "two are free, and for a while all three are wanted";
  crew.fleet.clock()->Advance(11);
  EXPECT_LE(crew.SecondsToDeadline(), 0);
  crew.Pass(0);
  ASSERT_EQ(crew.view().round, 3);
  EXPECT_EQ(crew.RoundStateOf(3), RoundState::kOpen);
}

// Time synchronisation, an operator, or a virtual machine that was asleep.
TEST(EngineCohort, WhoSetsTheMachinesClockMovesNoDeadline) {
  Crew crew(QuorumWithGrace(), 3);
  crew.Deliver(0, 1);
  crew.Deliver(2, 1);
  for (const double seconds : {86400.0, -2 * 86400.0}) {
    crew.fleet.clock()->Set(seconds);
    crew.Pass(0);
    EXPECT_EQ(crew.RoundStateOf(1), RoundState::kOpen) << seconds;
    EXPECT_DOUBLE_EQ(crew.SecondsToDeadline(), 10) << seconds;
  }
  crew.Pass(10);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kCommitted);
}

TEST(EngineCohort, AfterTheGraceTheRoundIsAborted) {
  Crew crew(QuorumWithGrace(), 3);
  crew.Deliver(0, 1);
  crew.Pass(14.9);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kOpen);
  crew.Pass(0.2);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ(crew.at(0).All<Verdict>().at(0).outcome, Outcome::kNotApplied);
  EXPECT_EQ(crew.Record(0).failures, 0);
  EXPECT_EQ(crew.Record(1).failures, 1);
  EXPECT_EQ(crew.Record(2).failures, 1);
  // The next round opens when a cohort is free again.
  EXPECT_EQ(crew.view().phase, "waiting for clients");
  crew.Deliver(1, 1);
  EXPECT_EQ(crew.view().round, 1);
  crew.Deliver(2, 1);
  EXPECT_EQ(crew.view().round, 2);
  EXPECT_EQ(crew.Working(2).size(), 3);
}

class Weighted : public ::testing::Test {
 protected:
  static RunConfig Config() {
    RunConfig config = GridRunConfig(2, 10);
    config.rounds.weighting = Weighting::kSamples;
    return config;
  }
  Weighted() : crew_(Config(), 0) {}

  Crew crew_;
};

TEST_F(Weighted, TheAverageIsBySamples) {
  crew_.Join(0, 30);
  crew_.Join(1, 10);
  const std::string messages[] = {crew_.MakeUpdate(0, 1).message, crew_.MakeUpdate(1, 1).message};
  std::vector<float> expected(GridLayout().size()), weights = GridInitialWeights();
  ASSERT_EQ(
      AverageUpdates(crew_.fleet.codec(), {messages[0], messages[1]}, {0.75f, 0.25f}, 1, absl::MakeSpan(expected)),
      absl::OkStatus());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += expected[i];
  crew_.Deliver(0, 1);
  // An update is weighted by the samples that its client had when the update came.
  ASSERT_EQ(crew_.at(0).SayReady(1000), absl::OkStatus());
  EXPECT_EQ(crew_.Record(0).samples, 1000);
  crew_.Deliver(1, 1);
  ASSERT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(crew_.fleet.engine()->weights(), weights);
  const std::vector<LogMessage> log = *crew_.fleet.store()->ReadLog(0, 1);
  EXPECT_THAT(ParseForwarded(log[0].downstream)->samples, ElementsAre(30, 10));
}

TEST_F(Weighted, AClientWithoutSamplesIsRefused) {
  crew_.Join(0, 0);
  ASSERT_EQ(crew_.at(0).Count<Refusal>(), 1);
  EXPECT_FALSE(crew_.at(0).All<Refusal>()[0].retry);
  EXPECT_THAT(crew_.at(0).All<Refusal>()[0].reason, HasSubstr("samples"));
  for (int64_t impossible : {int64_t{-1}, (int64_t{1} << 40) + 1}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateMessage(crew_.fleet.codec(), Ready{0, {}, {}, impossible})));
  }
}

TEST_F(Weighted, SamplesAreStoredWhenTheyChange) {
  int64_t writes = 0;
  crew_.fleet.store()->fault = [&](absl::string_view call, bool after) {
    writes += call == "SetSamples" && after;
    return absl::OkStatus();
  };
  crew_.Join(0, 30);
  EXPECT_EQ(crew_.Record(0).samples, 30);
  crew_.Join(0, 30);
  EXPECT_EQ(writes, 1);
}

TEST(EngineCohort, UniformWeightingForwardsNoSamples) {
  Crew crew(GridRunConfig(2, 10), 2);
  crew.DeliverAll();
  EXPECT_THAT(ParseForwarded(crew.fleet.store()->ReadLog(0, 1)->at(0).downstream)->samples, IsEmpty());
}

// Real clients of which three in ten die in every round, after they were given work and before they seal anything.
class DroppingOut {
 public:
  explicit DroppingOut(const RunConfig& config) : fleet_(config, 10), random_(5) {
    EXPECT_EQ(fleet_.StartAll(), absl::OkStatus());
  }

  // Runs to the end of the run; `with_deadlines` when rounds may need theirs.
  void Run(bool with_deadlines) {
    while (!fleet_.engine()->View().ended) {
      Choose();
      const int64_t round = fleet_.engine()->View().round;
      for (int64_t step = 0; fleet_.engine()->View().round == round && !fleet_.engine()->View().ended; ++step) {
        ASSERT_LT(step, 5000);
        if (*fleet_.DeliverAny(&random_)) continue;
        ASSERT_TRUE(with_deadlines) << "round " << round << " does not commit by itself";
        ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
      }
      ComeBack();
    }
    ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  }
  // Every round committed, and nothing was lost.
  void Check() {
    EXPECT_EQ(fleet_.engine()->View().head.version, fleet_.config().rounds.count);
    EXPECT_EQ((*fleet_.store()->LastRound())->id, fleet_.config().rounds.count);
    for (int64_t i = 0; i < 10; ++i) {
      fleet_.KillClient(i);
      ASSERT_EQ(fleet_.StartClient(i), absl::OkStatus());
      EXPECT_EQ(CheckConservation(fleet_.store(), fleet_.codec(), i, *fleet_.state(i)->Read(), fleet_.baseline(i)),
                absl::OkStatus());
    }
  }
  int64_t dropped() const { return dropped_; }

 private:
  void Choose() {
    std::set<int64_t> chosen;
    while (chosen.size() < 3) chosen.insert(static_cast<int64_t>(random_.Below(10)));
    for (int64_t i = 0; i < 10; ++i) fleet_.set_keep_going(i, chosen.count(i) == 0);
  }
  void ComeBack() {
    for (int64_t i = 0; i < 10; ++i) {
      if (fleet_.connected(i)) continue;
      dropped_ += absl::IsCancelled(fleet_.last_result(i));
      fleet_.Connect(i);
    }
  }

  FleetSimulation fleet_;
  Random random_;
  int64_t dropped_ = 0;
};

TEST(EngineCohort, RoundsCommitThoughThreeInTenDropOut) {
  RunConfig config = GridRunConfig(10, 20);
  config.rounds.quorum = 7;
  config.clients.set_aside_after = 10;
  config.clients.set_aside_seconds = 60;
  DroppingOut fleet(config);
  fleet.Run(/*with_deadlines=*/true);
  fleet.Check();
  EXPECT_EQ(fleet.dropped(), 3 * 20);
}

TEST(EngineCohort, OverSelectionNeedsNoDeadlineThoughThreeInTenDropOut) {
  RunConfig config = GridRunConfig(10, 20);
  config.rounds.selection = Selection::kRandom;
  config.rounds.cohort = config.rounds.quorum = 7;
  config.rounds.invited = 10;
  DroppingOut fleet(config);
  fleet.Run(/*with_deadlines=*/false);
  fleet.Check();
  EXPECT_GT(fleet.dropped(), 2 * 20);
}

}  // namespace
}  // namespace terse
