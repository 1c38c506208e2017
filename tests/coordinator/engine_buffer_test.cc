// Buffered rounds: nobody waits for anybody, updates may be stale within a bound, and none is lost or counted twice.
#include <string>
#include <vector>

#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "coordinator/staleness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunConfig Buffered(int64_t clients, int64_t buffer, int64_t staleness, int64_t rounds = 20) {
  RunConfig config = GridRunConfig(clients, rounds);
  config.rounds.buffered = true;
  config.rounds.cohort = config.rounds.quorum = buffer;
  config.rounds.staleness = staleness;
  return config;
}

std::vector<Outcome> Outcomes(const ScriptedClient& client) {
  std::vector<Outcome> outcomes;
  for (const Verdict& verdict : client.All<Verdict>()) outcomes.push_back(verdict.outcome);
  return outcomes;
}

Forwarded LogOf(Crew& crew, int64_t version) {
  static std::vector<std::string> kept;  // the views of a Forwarded point into it
  kept.push_back(crew.fleet.store()->ReadLog(version - 1, version)->at(0).downstream);
  return *ParseForwarded(kept.back());
}

TEST(EngineBuffer, SharesOfStaleUpdatesFallWithTheSquareRoot) {
  EXPECT_EQ(StaleShare(0), kFreshShare);
  EXPECT_EQ(StaleShare(3), kFreshShare / 2);
  EXPECT_EQ(StaleShare(8), kFreshShare / 3);
  EXPECT_EQ(StaleShare(1), 741455);  // floor(2^20 / sqrt(2))
  EXPECT_EQ(StaleShare(int64_t{1} << 60), 1);
}

TEST(EngineBuffer, AStaleUpdateCountsLess) {
  Crew crew(Buffered(3, 1, 5), 3);
  EXPECT_EQ(crew.Working(1), (std::set<int64_t>{0, 1, 2}));
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(crew.Working(2), (std::set<int64_t>{0})) << "who trains is left alone";
  const Update late = crew.MakeUpdate(1, 1);
  ASSERT_EQ(crew.at(1).Say(late), absl::OkStatus());
  ASSERT_EQ(crew.view().head.version, 2);
  EXPECT_THAT(Outcomes(crew.at(1)), ElementsAre(Outcome::kApplied));

  EXPECT_THAT(LogOf(crew, 1).samples, IsEmpty());
  const Forwarded second = LogOf(crew, 2);
  EXPECT_THAT(second.samples, ElementsAre(StaleShare(1)));
  EXPECT_EQ(second.total, kFreshShare);
  // The expected step is made by hand: the float nearest to the share, times the decoded update.
  std::vector<float> expected = GridInitialWeights(), step(expected.size(), 0.0f);
  ASSERT_EQ(crew.fleet.codec().AddDecoded(crew.MakeUpdate(0, 1).message, 1, absl::MakeSpan(expected)),
            absl::OkStatus());
  ASSERT_EQ(crew.fleet.codec().AddDecoded(late.message, 1, absl::MakeSpan(step)), absl::OkStatus());
  const float share = static_cast<float>(741455.0 / 1048576.0);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += share * step[i];
  EXPECT_EQ(crew.fleet.engine()->weights(), expected);
}

TEST(EngineBuffer, TheBufferFillsFromDifferentRounds) {
  Crew crew(Buffered(4, 2, 5), 4);
  crew.Deliver(0, 1);
  EXPECT_EQ(crew.view().head.version, 0);
  EXPECT_EQ(crew.at(0).Count<Assignment>(), 1) << "no new work before the verdict";
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  crew.Deliver(2, 1);
  crew.Deliver(0, 2);
  ASSERT_EQ(crew.view().head.version, 2);
  EXPECT_THAT(LogOf(crew, 2).samples, ElementsAre(kFreshShare, StaleShare(1)));
  EXPECT_EQ(LogOf(crew, 2).total, 2 * kFreshShare);
}

TEST(EngineBuffer, AnUpdateBeyondTheBoundIsNotApplied) {
  Crew crew(Buffered(2, 1, 2), 2);
  for (int64_t round = 1; round <= 3; ++round) crew.Deliver(0, round);
  ASSERT_EQ(crew.view().head.version, 3);
  const Update late = crew.MakeUpdate(1, 1);
  ASSERT_EQ(crew.at(1).Say(late), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 3);
  EXPECT_THAT(Outcomes(crew.at(1)), ElementsAre(Outcome::kNotApplied));
  EXPECT_EQ(crew.Record(1).updates_not_applied, 1);
  // It is free for new work at once, and what was refused stays refused.
  EXPECT_EQ(crew.Working(4), (std::set<int64_t>{0, 1}));
  ASSERT_EQ(crew.at(1).Say(late), absl::OkStatus());
  EXPECT_THAT(Outcomes(crew.at(1)), ElementsAre(Outcome::kNotApplied, Outcome::kNotApplied));
  EXPECT_EQ(crew.view().head.version, 3);
}

TEST(EngineBuffer, ARepeatedUpdateCountsOnce) {
  Crew crew(Buffered(3, 2, 5), 3);
  const Update update = crew.MakeUpdate(0, 1);
  ASSERT_EQ(crew.at(0).Say(update), absl::OkStatus());
  ASSERT_EQ(crew.at(0).Say(update), absl::OkStatus());
  EXPECT_EQ(crew.at(0).Count<Receipt>(), 2);
  EXPECT_EQ(crew.view().head.version, 0);
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(LogOf(crew, 1).updates.size(), 2);
  ASSERT_EQ(crew.at(0).Say(update), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(Outcomes(crew.at(0)).back(), Outcome::kApplied);
}

TEST(EngineBuffer, AnAbortedRoundLeavesItsUpdatesToTheNextOne) {
  Crew crew(Buffered(3, 2, 5), 3);
  const std::string message = crew.MakeUpdate(0, 1).message;
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.fleet.Handle(AbortRequested{"by command"}), absl::OkStatus());
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  EXPECT_THAT(Outcomes(crew.at(0)), IsEmpty());
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(std::string(LogOf(crew, 1).updates[0]), message);
}

TEST(EngineBuffer, UpdatesThatComeBetweenRoundsWaitForTheNextOne) {
  Crew crew(Buffered(2, 1, 5), 2);
  ASSERT_EQ(crew.fleet.Handle(PauseRequested{"by command"}), absl::OkStatus());
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  ASSERT_EQ(crew.view().phase, "paused");
  crew.Deliver(1, 1);
  EXPECT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(crew.at(1).Count<Receipt>(), 1);
  ASSERT_EQ(crew.fleet.Handle(ResumeRequested{}), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 2);
  EXPECT_EQ(crew.Working(2), std::set<int64_t>{}) << "what would be too late at once";
  EXPECT_EQ(crew.Working(3), (std::set<int64_t>{0, 1}));
}

TEST(EngineBuffer, AQuorumClosesAtTheDeadline) {
  RunConfig config = Buffered(4, 3, 5);
  config.rounds.quorum = 1;
  Crew crew(config, 4);
  crew.Deliver(0, 1);
  crew.Pass(config.rounds.deadline_seconds + 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(crew.Record(1).failures, 0) << "training for long is no failure";
  // Two updates, one of them stale: each counts for a half, not for a third.
  crew.Deliver(0, 2);
  crew.Deliver(1, 1);
  crew.Pass(config.rounds.deadline_seconds + 1);
  ASSERT_EQ(crew.view().head.version, 2);
  EXPECT_THAT(LogOf(crew, 2).samples, ElementsAre(kFreshShare, StaleShare(1)));
  EXPECT_EQ(LogOf(crew, 2).total, 2 * kFreshShare);
}

TEST(EngineBuffer, WithoutAQuorumARoundWaitsUntilAPause) {
  RunConfig config = Buffered(3, 2, 5);
  Crew crew(config, 3);
  crew.Deliver(0, 1);
  crew.Pass(config.rounds.deadline_seconds + 1);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kOpen);
  ASSERT_EQ(crew.fleet.Handle(PauseRequested{"by command"}), absl::OkStatus());
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ(crew.view().phase, "paused");
  EXPECT_THAT(Outcomes(crew.at(0)), IsEmpty());
  ASSERT_EQ(crew.fleet.Handle(ResumeRequested{}), absl::OkStatus());
  crew.Deliver(1, 1);
  EXPECT_EQ(crew.view().head.version, 1);
}

TEST(EngineBuffer, WhatComesBetweenRoundsIsAsStaleAsItIs) {
  for (const int64_t bound : {0, 1}) {
    Crew crew(Buffered(3, 2, bound), 3);
    ASSERT_EQ(crew.fleet.Handle(PauseRequested{"by command"}), absl::OkStatus());
    crew.Deliver(0, 1);
    crew.Deliver(1, 1);
    ASSERT_EQ(crew.view().phase, "paused");
    // The update belongs to the settled round: it is one version behind the head.
    const Update update = crew.MakeUpdate(2, 1);
    ASSERT_EQ(crew.at(2).Say(update), absl::OkStatus());
    if (bound == 0) {
      EXPECT_THAT(Outcomes(crew.at(2)), ElementsAre(Outcome::kNotApplied));
      continue;
    }
    EXPECT_THAT(Outcomes(crew.at(2)), IsEmpty());
    ASSERT_EQ(crew.fleet.Handle(ResumeRequested{}), absl::OkStatus());
    crew.Deliver(0, 2);
    ASSERT_EQ(crew.view().head.version, 2);
    EXPECT_THAT(Outcomes(crew.at(2)), ElementsAre(Outcome::kApplied));
    EXPECT_THAT(LogOf(crew, 2).samples, ElementsAre(kFreshShare, StaleShare(1)));
  }
}

TEST(EngineBuffer, AnUpdateThatWaitsToBeChosenIsPending) {
  Crew crew(Buffered(3, 2, 5), 3);
  const Update update = crew.MakeUpdate(0, 1);
  ASSERT_EQ(crew.at(0).Say(update), absl::OkStatus());
  crew.Leave(0);
  ScriptedClient again(&crew.fleet, "c0", 2001);
  ASSERT_EQ(again.SayCheckIn({}, update.update_id, update.round), absl::OkStatus());
  EXPECT_EQ(again.All<Welcome>().at(0).verdict->outcome, Outcome::kPending);
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(crew.LastApplied(0), update.update_id);
}

TEST(EngineBuffer, TheEndOfTheRunSettlesWhatWasNotChosen) {
  Crew crew(Buffered(3, 2, 5), 3);
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.fleet.Handle(StopRequested{}), absl::OkStatus());
  EXPECT_THAT(Outcomes(crew.at(0)), ElementsAre(Outcome::kNotApplied));
  ASSERT_EQ(crew.at(1).Say(crew.MakeUpdate(1, 1)), absl::OkStatus());
  EXPECT_THAT(Outcomes(crew.at(1)), ElementsAre(Outcome::kNotApplied));
}

TEST(EngineBuffer, WhoTrainsHearsOfTheNewVersionsAfterwards) {
  Crew crew(Buffered(2, 1, 9), 2);
  for (int64_t round = 1; round <= 3; ++round) crew.Deliver(0, round);
  EXPECT_EQ(crew.at(1).Count<Downstream>(), 0);
  crew.Deliver(1, 1);
  ASSERT_EQ(crew.view().head.version, 4);
  EXPECT_EQ(crew.at(1).Count<Downstream>(), 4);
  EXPECT_EQ(crew.Working(5), (std::set<int64_t>{1})) << "client 0 is still at round 4";
}

TEST(EngineBuffer, NoMoreUpdatesWaitThanARoundMayHave) {
  RunConfig config = Buffered(2, 1, 5);
  config.data.partition = "all";
  Crew crew(config, 4);
  ASSERT_EQ(crew.fleet.Handle(PauseRequested{"by command"}), absl::OkStatus());
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.view().phase, "paused");
  for (int64_t i = 1; i < 4; ++i) ASSERT_EQ(crew.at(i).Say(crew.MakeUpdate(i, 1)), absl::OkStatus());
  EXPECT_EQ(crew.at(2).Count<Receipt>(), 1);
  EXPECT_EQ(crew.at(3).Count<Receipt>(), 0);
  EXPECT_EQ(crew.at(3).Count<Refusal>(), 1);
  EXPECT_EQ(crew.Record(3).failures, 0);
}

// Real clients, of which some are killed with their coordinator.
TEST(EngineBuffer, NothingIsLostThroughDeaths) {
  RunConfig config = Buffered(3, 2, 3, 12);
  FleetSimulation fleet(config, 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  Random random(5);
  for (int64_t kill = 0; kill < 6; ++kill) {
    for (int64_t step = 0; step < 13 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(&random).status(), absl::OkStatus());
    fleet.KillClient(kill % 3);
    ASSERT_EQ(fleet.StartClient(kill % 3), absl::OkStatus());
    if (kill % 2 == 0) {
      fleet.KillCoordinator();
      ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    }
    for (int64_t i = 0; i < 3; ++i) {
      if (!fleet.connected(i)) fleet.Connect(i);
    }
  }
  ASSERT_EQ(fleet.Settle(&random), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 12);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus()) << i;
  }
}

}  // namespace
}  // namespace terse
