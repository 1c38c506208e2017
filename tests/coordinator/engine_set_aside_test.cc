// Clients that fail again and again: what counts, what follows, and how they come back.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunConfig SetAsideConfig(int64_t clients, int64_t quorum, int64_t after) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.rounds.quorum = quorum;
  config.clients.set_aside_after = after;
  config.clients.set_aside_seconds = 100;
  return config;
}

// Two of three clients carry the run; client 2 is the one that fails.
class SetAsideTest : public ::testing::Test {
 protected:
  explicit SetAsideTest(int64_t after = 3) : crew_(SetAsideConfig(3, 2, after), 3) {}

  void Misbehave(int64_t times) {
    for (int64_t k = 0; k < times; ++k) {
      // ScriptedClients count their sessions from 1001 on, and client 2 is the newest.
      ASSERT_EQ(crew_.fleet.Handle(Misbehaved{session_++, "the update has no id"}), absl::OkStatus());
      crew_.Join(2);
    }
  }
  // A round of clients 0 and 1, which ends at its deadline.
  void CommitWithoutClient2() {
    const int64_t round = crew_.view().round;
    crew_.Deliver(0, round);
    crew_.Deliver(1, round);
    if (crew_.view().round == round) crew_.Pass(11);
    ASSERT_EQ(crew_.view().round, round + 1);
  }

  Crew crew_;
  SessionId session_ = 1003;
};

TEST_F(SetAsideTest, AfterSoManyFailuresInARow) {
  Misbehave(2);
  EXPECT_EQ(crew_.Record(2).failures, 2);
  EXPECT_EQ(crew_.StateOf(2), "training");
  Misbehave(1);
  const ClientRecord record = crew_.Record(2);
  EXPECT_EQ(record.set_aside_until_us, crew_.fleet.clock()->NowMicros() + 100'000'000);
  EXPECT_THAT(record.set_aside_reason, HasSubstr("3 failures in a row; the last: the update has no id"));
  EXPECT_EQ(EventsOf(crew_.fleet, "client_set_aside").size(), 1);
  EXPECT_EQ(EventsOf(crew_.fleet, "message_refused").size(), 3);
  EXPECT_EQ(crew_.StateOf(2), "set aside");
}

TEST_F(SetAsideTest, AnotherFailureDoesNotProlongItsTime) {
  Misbehave(3);
  const int64_t until = crew_.Record(2).set_aside_until_us;
  crew_.fleet.clock()->Advance(10);
  Misbehave(1);
  EXPECT_EQ(crew_.Record(2).failures, 4);
  EXPECT_EQ(crew_.Record(2).set_aside_until_us, until);
  EXPECT_EQ(EventsOf(crew_.fleet, "client_set_aside").size(), 1);
}

TEST_F(SetAsideTest, ItGetsNoWorkAndAllTheNews) {
  Misbehave(3);
  crew_.at(2).Forget();
  CommitWithoutClient2();
  EXPECT_THAT(crew_.Working(2), ElementsAre(0, 1));
  EXPECT_EQ(crew_.at(2).Count<Downstream>(), 1);
  EXPECT_EQ(crew_.Record(2).failures, 3);
}

TEST_F(SetAsideTest, TimeReadmitsIt) {
  Misbehave(3);
  for (int k = 0; k < 11; ++k) {
    CommitWithoutClient2();
    crew_.fleet.clock()->Advance(9);
  }
  CommitWithoutClient2();
  EXPECT_EQ(crew_.StateOf(2), "set aside");
  EXPECT_LT(crew_.SecondsToDeadline(), 2);  // its time is over before the round's
  crew_.Pass(2);
  EXPECT_EQ(crew_.StateOf(2), "training");
  EXPECT_EQ(crew_.Record(2).failures, 0);
  EXPECT_EQ(crew_.Record(2).set_aside_until_us, 0);
  EXPECT_EQ(EventsOf(crew_.fleet, "client_readmitted").size(), 1);
}

// The connection that lost its name still stands in the engine's books, until the network says that it is gone.
TEST_F(SetAsideTest, WhoseNameIsTakenOverIsNotReadmittedForEver) {
  Misbehave(3);  // each time a newer connection takes the name
  crew_.Pass(101);
  EXPECT_EQ(EventsOf(crew_.fleet, "client_readmitted").size(), 1);
  EXPECT_GT(crew_.SecondsToDeadline(), 0) << "the timer is due again at once, and will be for ever";
}

// The same with a real client whose old connection hangs when the new one checks in.
TEST(SetAsideFleet, TheTimerOfAConnectionThatWasReplacedDoesNotFireForEver) {
  FleetSimulation fleet(SetAsideConfig(2, 1, 3), 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  const int64_t until = fleet.clock()->NowMicros() + 5'000'000;
  ASSERT_EQ(fleet.Handle(SetAsideRequested{1, until, "the test says so"}), absl::OkStatus());
  fleet.Cut(1, 0);  // the coordinator does not hear of it
  fleet.Connect(1);
  ASSERT_EQ(fleet.DeliverUp(1).value(), true);
  while (fleet.clock()->NowMicros() < until) ASSERT_EQ(fleet.PassNextDeadline().status(), absl::OkStatus());
  EXPECT_EQ(EventsOf(fleet, "client_readmitted").size(), 1);
}

TEST_F(SetAsideTest, WhoSetsTheMachinesClockDoesNotReadmitIt) {
  Misbehave(3);
  for (const double seconds : {86400.0, -2 * 86400.0}) {
    crew_.fleet.clock()->Set(seconds);
    crew_.Pass(0);
    EXPECT_EQ(crew_.StateOf(2), "set aside") << seconds;
  }
  crew_.Pass(101);
  EXPECT_NE(crew_.StateOf(2), "set aside");
}

TEST_F(SetAsideTest, TimeReadmitsItWhileItIsAway) {
  Misbehave(3);
  crew_.Leave(2);
  crew_.fleet.clock()->Advance(101);
  crew_.Join(2);
  EXPECT_EQ(crew_.StateOf(2), "training");
  EXPECT_EQ(crew_.Record(2).failures, 0);
}

TEST_F(SetAsideTest, ItStaysAsideAfterARestart) {
  Misbehave(3);
  crew_.Restart();
  for (int64_t i = 0; i < 3; ++i) crew_.Join(i);
  EXPECT_EQ(crew_.StateOf(2), "set aside");
  EXPECT_THAT(crew_.Working(1), ElementsAre(0, 1));
}

TEST_F(SetAsideTest, TheOperatorSetsAsideAndReadmits) {
  crew_.DeliverAll();
  const int64_t until = crew_.fleet.clock()->NowMicros() + 50'000'000;
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{1, until, "its disk is being replaced"}), absl::OkStatus());
  EXPECT_EQ(crew_.Record(1).set_aside_reason, "its disk is being replaced");
  EXPECT_EQ(crew_.StateOf(1), "training");
  crew_.DeliverAll();  // what it began does not count any more
  EXPECT_EQ(crew_.StateOf(1), "set aside");
  EXPECT_EQ(crew_.at(1).All<Verdict>().back().outcome, Outcome::kNotApplied);
  crew_.Pass(11);
  EXPECT_THAT(crew_.Working(3), ElementsAre(0, 2));
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{1, 0, "done"}), absl::OkStatus());
  EXPECT_THAT(crew_.Working(3), ElementsAre(0, 1, 2));  // at once
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{99, 0, "nobody"}), absl::OkStatus());
  EXPECT_TRUE(crew_.fleet.coordinator_up());
}

TEST_F(SetAsideTest, ARunWhoseClientsAreAllAsideGoesOnByItself) {
  crew_.DeliverAll();
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t until = crew_.fleet.clock()->NowMicros() + (50 + i) * 1'000'000;
    ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{i, until, "all of them"}), absl::OkStatus());
  }
  crew_.Pass(11);  // nobody delivers
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kAborted);
  for (int64_t i = 0; i < 3; ++i) ASSERT_EQ(crew_.at(i).SayReady(), absl::OkStatus());
  EXPECT_EQ(crew_.view().phase, "waiting for clients");
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->id, 2);
  for (int k = 0; k < 10 && crew_.view().round == 2; ++k) crew_.Pass(crew_.SecondsToDeadline());
  EXPECT_EQ(crew_.view().round, 3);
  EXPECT_EQ(crew_.Working(3).size(), 2);  // a quorum, since it had waited long enough
}

TEST_F(SetAsideTest, ADeadlineThatPassesIsAFailureForWhoHadWork) {
  CommitWithoutClient2();
  EXPECT_EQ(crew_.Record(2).failures, 1);
  EXPECT_LT(crew_.Record(2).reliability, 1);
  EXPECT_EQ(crew_.Record(0).failures, 0);
  // It still works for round 1 and had none in round 2, so that deadline is no failure of its.
  CommitWithoutClient2();
  EXPECT_EQ(crew_.Record(2).failures, 1);
  // An update that is committed ends the row.
  crew_.Deliver(2, 1);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.Record(2).updates_applied, 1);
  EXPECT_EQ(crew_.Record(2).failures, 0);
}

TEST_F(SetAsideTest, RefusedAndConflictingUpdatesAndDriftAreFailures) {
  ASSERT_EQ(crew_.at(2).Say(crew_.at(2).MakeUpdate(1, 2, 0, HashBytes("another past"))), absl::OkStatus());
  EXPECT_EQ(crew_.Record(2).failures, 1);
  ASSERT_EQ(crew_.at(2).Say(crew_.MakeUpdate(2, 1)), absl::OkStatus());  // a refused session is not heard
  EXPECT_EQ(crew_.at(2).Count<Receipt>(), 0);
  crew_.Join(2);
  crew_.Deliver(2, 1);
  ASSERT_EQ(crew_.at(2).Say(crew_.at(2).MakeUpdate(1, 2, 7)), absl::OkStatus());
  EXPECT_EQ(crew_.Record(2).failures, 2);
  crew_.Connect(2);
  ASSERT_EQ(crew_.at(2).Say(Ready{0, HashBytes("other weights"), GridLayout().Hash(), 1}), absl::OkStatus());
  EXPECT_EQ(crew_.Record(2).failures, 3);
  EXPECT_NE(crew_.Record(2).set_aside_until_us, 0);
}

TEST_F(SetAsideTest, AStrangerThatMisbehavesIsNobodysFailure) {
  ScriptedClient stranger(&crew_.fleet, "x", 3000);
  ASSERT_EQ(crew_.fleet.Handle(Misbehaved{3000, "no message"}), absl::OkStatus());
  ASSERT_EQ(crew_.fleet.Handle(Misbehaved{4000, "gone already"}), absl::OkStatus());
  EXPECT_EQ(EventsOf(crew_.fleet, "message_refused").size(), 1);
  ASSERT_EQ(stranger.SayCheckIn(), absl::OkStatus());  // the edge has refused it
  EXPECT_EQ(stranger.Count<Welcome>(), 0);
}

class NeverAside : public SetAsideTest {
 protected:
  NeverAside() : SetAsideTest(0) {}
};

TEST_F(NeverAside, ZeroMeansNever) {
  Misbehave(20);
  EXPECT_EQ(crew_.Record(2).failures, 20);
  EXPECT_EQ(crew_.StateOf(2), "training");
}

}  // namespace
}  // namespace terse
