// Clients that are not there: whom a round waits for, and for how long.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;

// Three clients, of which two are a quorum, and a deadline that is far away.
RunConfig AbsenceConfig() {
  RunConfig config = GridRunConfig(3, 1000);
  config.rounds.quorum = 2;
  config.rounds.deadline_seconds = 600;
  return config;
}

class Absence : public ::testing::Test {
 protected:
  explicit Absence(const RunConfig& config = AbsenceConfig()) : crew_(config, 3) {}

  // Everyone delivers, then client 2 goes and the others deliver for the next round, which stays open.
  void LoseClient2() {
    crew_.DeliverAll();
    ASSERT_EQ(crew_.view().round, 2);
    crew_.Leave(2);
    crew_.Deliver(0, 2);
    crew_.Deliver(1, 2);
    ASSERT_EQ(crew_.view().round, 2) << "client 2 may come back";
  }

  Crew crew_;
};

TEST_F(Absence, ARoundClosesWithoutAClientThatIsGone) {
  LoseClient2();
  EXPECT_DOUBLE_EQ(crew_.SecondsToDeadline(), 10);
  crew_.Pass(9.9);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kOpen);
  crew_.Pass(0.1);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
  EXPECT_EQ(crew_.Record(2).failures, 0) << "it had until the deadline";
  // Nobody waits for it any more.
  crew_.DeliverAll();
  EXPECT_EQ(crew_.RoundStateOf(3), RoundState::kCommitted);
  crew_.Join(2);
  EXPECT_THAT(crew_.Working(4), ElementsAre(0, 1, 2));
}

TEST_F(Absence, WhoComesBackInTimeIsWaitedFor) {
  LoseClient2();
  crew_.Pass(5);
  crew_.Connect(2);  // it has not said Ready
  crew_.Pass(60);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kOpen);
  ASSERT_EQ(crew_.at(2).SayReady(), absl::OkStatus());
  EXPECT_THAT(crew_.Working(2), ElementsAre(0, 1, 2));
  crew_.Pass(60);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kOpen);
  crew_.Deliver(2, 2);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
  EXPECT_EQ(crew_.Record(2).updates_applied, 2);
}

TEST_F(Absence, TheLastOneToLeaveClosesARoundWhoseQuorumIsIn) {
  crew_.Pass(60);
  crew_.Deliver(0, 1);
  crew_.Deliver(1, 1);
  crew_.Pass(60);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kOpen) << "client 2 trains";
  crew_.Leave(2);
  crew_.Leave(0);  // it delivered
  crew_.Pass(10);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
}

TEST_F(Absence, WithoutAQuorumARoundWaitsForItsDeadline) {
  crew_.Leave(1);
  crew_.Leave(2);
  crew_.Deliver(0, 1);
  crew_.Pass(599);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kOpen);
  crew_.Pass(1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
}

TEST_F(Absence, AfterARestartEverybodyMayComeBack) {
  crew_.DeliverAll();
  crew_.Pass(100);
  crew_.Restart();
  for (int64_t i = 0; i < 2; ++i) crew_.Join(i);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kOpen);
  EXPECT_DOUBLE_EQ(crew_.SecondsToDeadline(), 10);
  crew_.Pass(10);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
}

TEST_F(Absence, WhoIsSetAsideIsNotWaitedFor) {
  crew_.Pass(60);
  const int64_t until = crew_.fleet.clock()->NowMicros() + 1'000'000'000;
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{2, until, "it fails"}), absl::OkStatus());
  crew_.Deliver(0, 1);
  crew_.Deliver(1, 1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
}

TEST_F(Absence, ARoundOpensWithoutThem) {
  LoseClient2();
  ASSERT_EQ(crew_.fleet.Handle(AbortRequested{"the operator says so"}), absl::OkStatus());
  EXPECT_EQ(crew_.view().phase, "waiting for clients");
  EXPECT_DOUBLE_EQ(crew_.SecondsToDeadline(), 10);
  crew_.Pass(10);
  EXPECT_EQ(crew_.RoundStateOf(3), RoundState::kOpen);
  EXPECT_THAT(crew_.Working(3), ElementsAre(0, 1));
}

TEST(AbsenceBeforeTheFirstRound, TheWholeFleetIsWaitedFor) {
  Crew crew(AbsenceConfig(), 2);
  crew.Pass(599);
  EXPECT_EQ(crew.view().round, 0);
  crew.Pass(1);
  EXPECT_EQ(crew.view().round, 1);
}

RunConfig Drawn() {
  RunConfig config = AbsenceConfig();
  config.rounds.selection = Selection::kRandom;
  return config;
}

class AbsenceOfDrawn : public Absence {
 protected:
  AbsenceOfDrawn() : Absence(Drawn()) {}
};

TEST_F(AbsenceOfDrawn, ACohortThatIsTheWholeFleetClosesWithoutThem) {
  LoseClient2();
  crew_.Pass(10);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.RoundStateOf(3), RoundState::kCommitted);
}

TEST(AbsenceOfACohort, WhoHoldsNoPlaceIsNotWaitedFor) {
  RunConfig config = Drawn();
  config.rounds.clients = 5;
  config.data.partition = "all";
  config.rounds.invited = 4;
  config.rounds.cohort = 3;
  Crew crew(config, 5);
  crew.Pass(60);
  const std::set<int64_t> working = crew.Working(1);
  ASSERT_EQ(working.size(), 4);
  const std::vector<int64_t> order(working.begin(), working.end());
  crew.Deliver(order[0], 1);
  crew.Deliver(order[1], 1);
  for (int k = 2; k < 4; ++k) crew.Leave(order[k]);
  EXPECT_EQ(crew.Working(1).size(), 3) << "the fifth takes a place, and is waited for";
  crew.Pass(60);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kOpen);
}

TEST(AbsenceInABufferedRun, AFullBufferIsNotWaitedForInVain) {
  RunConfig config = AbsenceConfig();
  config.rounds.buffered = true;
  config.rounds.staleness = 10;
  Crew crew(config, 3);
  crew.DeliverAll();
  ASSERT_EQ(crew.view().round, 2);
  crew.Leave(2);
  crew.Deliver(0, 2);
  crew.Deliver(1, 2);
  EXPECT_EQ(crew.RoundStateOf(2), RoundState::kOpen);
  EXPECT_DOUBLE_EQ(crew.SecondsToDeadline(), 10);
  crew.Pass(10);
  EXPECT_EQ(crew.RoundStateOf(2), RoundState::kCommitted);
  crew.DeliverAll();
  EXPECT_EQ(crew.RoundStateOf(3), RoundState::kCommitted);
}

// An aborted round leaves its updates to the next one, for which nobody else may come.
TEST(AbsenceInABufferedRun, WhatAnAbortedRoundLeftIsNotHeldUp) {
  RunConfig config = AbsenceConfig();
  config.rounds.buffered = true;
  config.rounds.staleness = 10;
  Crew crew(config, 3);
  crew.Pass(60);
  crew.Deliver(0, 1);
  crew.Deliver(1, 1);
  crew.Leave(0);
  crew.Leave(1);
  crew.Leave(2);
  ASSERT_EQ(crew.fleet.Handle(PauseRequested{"maintenance"}), absl::OkStatus());
  ASSERT_EQ(crew.fleet.Handle(AbortRequested{"the operator says so"}), absl::OkStatus());
  crew.Pass(60);
  ASSERT_EQ(crew.view().phase, "paused");
  ASSERT_EQ(crew.fleet.Handle(ResumeRequested{}), absl::OkStatus());
  EXPECT_EQ(crew.RoundStateOf(2), RoundState::kCommitted);
  EXPECT_EQ(crew.view().head.version, 1);
}

}  // namespace
}  // namespace terse
