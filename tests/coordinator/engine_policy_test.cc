// Refused updates: verdicts, books and events, lost verdicts, crashes on either side of the close, rounds that are left
// with too few updates.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"
#include "tests/testing/histories.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunConfig PolicyConfig(int64_t clients) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.policy.norm_bound = 50;  // an honest update's is below 10
  config.policy.norm_ratio = 0;
  return config;
}

class PolicyTest : public ::testing::Test {
 protected:
  explicit PolicyTest(const RunConfig& config = PolicyConfig(3)) : crew_(config, config.rounds.clients) {}

  Update MakeHostile(int64_t i, int64_t round) {
    Update update = crew_.MakeUpdate(i, round);
    std::vector<float> delta = GridDelta(i, round);
    for (float& value : delta) value *= 1000;
    update.message = *crew_.fleet.codec().Encode(delta);
    update.update_id =
        MakeUpdateId((*crew_.fleet.store()->Run())->lineage, round, i, crew_.LastApplied(i), update.message);
    return update;
  }
  void DeliverHostile(int64_t i, int64_t round) { ASSERT_EQ(crew_.at(i).Say(MakeHostile(i, round)), absl::OkStatus()); }
  // Everyone but client 2, whose update comes first.
  void RoundWithHostile(int64_t round) {
    DeliverHostile(2, round);
    crew_.Deliver(0, round);
    crew_.Deliver(1, round);
  }
  Verdict LastVerdict(int64_t i) { return crew_.at(i).All<Verdict>().back(); }

  Crew crew_;
};

TEST_F(PolicyTest, ARefusedUpdateIsResetAndTheOthersCommit) {
  const Update refused = MakeHostile(2, 1);
  RoundWithHostile(1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(LastVerdict(0).outcome, Outcome::kApplied);
  EXPECT_EQ(LastVerdict(1).outcome, Outcome::kApplied);
  EXPECT_EQ(LastVerdict(2).outcome, Outcome::kReset);
  EXPECT_EQ(LastVerdict(2).update_id, refused.update_id);
  EXPECT_EQ(LastVerdict(2).last_applied, Id128());
  EXPECT_THAT(LastVerdict(2).reason, AllOf(HasSubstr("was refused: its norm of "), HasSubstr("norm_bound = 50")));

  const ClientRecord record = crew_.Record(2);
  EXPECT_EQ(record.last_applied, Id128());
  EXPECT_EQ(record.resets, 1);
  EXPECT_EQ(record.failures, 1);
  EXPECT_EQ(record.updates_applied, 0);
  EXPECT_EQ(record.updates_not_applied, 0);
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->id, 2);
  EXPECT_EQ((*crew_.fleet.store()->Rounds(1, 1))[0].updates, 2);
  const std::vector<EventRecord> events = EventsOf(crew_.fleet, "update_rejected");
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].client, 2);
  EXPECT_EQ(events[0].round, 1);
  EXPECT_THAT(events[0].detail, HasSubstr("above policy.norm_bound"));
  // The bytes of a refused update are booked, and count no dense bytes as saved.
  const std::vector<LedgerEntry> ledger = *crew_.fleet.store()->Ledger(1, 1);
  for (const LedgerEntry& entry : ledger) {
    if (entry.direction != Direction::kUp) continue;
    EXPECT_GT(entry.payload_bytes, 0);
    EXPECT_EQ(entry.dense_bytes > 0, entry.client != 2);
  }
}

TEST_F(PolicyTest, TheClientGoesOnInTheNextRound) {
  RoundWithHostile(1);
  EXPECT_EQ(crew_.StateOf(2), "training");
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 2);
  EXPECT_EQ(crew_.Record(2).updates_applied, 1);
  EXPECT_EQ(crew_.Record(2).failures, 0);
  EXPECT_EQ(crew_.Record(2).resets, 1);
}

TEST_F(PolicyTest, AClientThatMissedItsVerdictHearsItAtCheckIn) {
  const Update refused = MakeHostile(2, 1);
  DeliverHostile(2, 1);
  crew_.Leave(2);
  crew_.Deliver(0, 1);
  crew_.Deliver(1, 1);
  EXPECT_EQ(crew_.view().head.version, 1);
  for (SessionId session : {5000, 5001}) {  // also when that answer is lost
    ScriptedClient again(&crew_.fleet, "c2", session);
    ASSERT_EQ(again.SayCheckIn({}, refused.update_id, 1), absl::OkStatus());
    const Welcome welcome = again.All<Welcome>().back();
    ASSERT_TRUE(welcome.verdict.has_value());
    EXPECT_EQ(welcome.verdict->outcome, Outcome::kReset);
    EXPECT_THAT(welcome.verdict->reason, HasSubstr("norm_bound"));
    ASSERT_EQ(again.Disconnect(), absl::OkStatus());
  }
  EXPECT_EQ(crew_.Record(2).resets, 1) << "counted when the round closed";
  EXPECT_THAT(EventsOf(crew_.fleet, "residual_lost"), IsEmpty());
}

// The client sends its sealed update again, because its connection broke, and the round closes before that arrives.
TEST_F(PolicyTest, ARepetitionAfterTheCloseIsResetAgainBeforeNewWork) {
  const Update refused = MakeHostile(2, 1);
  DeliverHostile(2, 1);
  crew_.Leave(2);
  ScriptedClient again(&crew_.fleet, "c2", 5000);
  ASSERT_EQ(again.SayCheckIn({}, refused.update_id, 1), absl::OkStatus());
  EXPECT_EQ(again.All<Welcome>().back().verdict->outcome, Outcome::kPending);
  ASSERT_EQ(again.SayReady(), absl::OkStatus());
  crew_.Deliver(0, 1);
  crew_.Deliver(1, 1);
  EXPECT_EQ(again.All<Verdict>().back().outcome, Outcome::kReset);
  EXPECT_EQ(again.Count<Assignment>(), 0) << "it still owes an update";
  ASSERT_EQ(again.Say(refused), absl::OkStatus());
  EXPECT_EQ(again.Count<Verdict>(), 2);
  EXPECT_EQ(again.All<Verdict>().back().outcome, Outcome::kReset);
  EXPECT_EQ(again.Count<Assignment>(), 1);
  EXPECT_EQ(crew_.Record(2).resets, 1);
}

TEST_F(PolicyTest, ARefusalOutlivesACrashBeforeItIsTold) {
  const Update refused = MakeHostile(2, 1), honest = crew_.MakeUpdate(0, 1);
  DeliverHostile(2, 1);
  crew_.Deliver(0, 1);
  crew_.fleet.store()->fault = [](absl::string_view call, bool after) {
    return call == "CommitBatch" && after ? absl::InternalError("gone") : absl::OkStatus();
  };
  EXPECT_FALSE(crew_.at(1).Say(crew_.MakeUpdate(1, 1)).ok());
  crew_.Restart();
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  ScriptedClient hostile(&crew_.fleet, "c2", 5000), other(&crew_.fleet, "c0", 5001);
  ASSERT_EQ(hostile.SayCheckIn({}, refused.update_id, 1), absl::OkStatus());
  ASSERT_EQ(other.SayCheckIn({}, honest.update_id, 1), absl::OkStatus());
  EXPECT_EQ(hostile.All<Welcome>().back().verdict->outcome, Outcome::kReset);
  EXPECT_EQ(other.All<Welcome>().back().verdict->outcome, Outcome::kApplied);
  EXPECT_EQ(crew_.Record(2).resets, 1);
  EXPECT_EQ(crew_.Record(0).resets, 0);
}

TEST_F(PolicyTest, ACrashBeforeTheCloseRefusesNothing) {
  const Update refused = MakeHostile(2, 1);
  crew_.fleet.store()->fault = [](absl::string_view call, bool after) {
    return call == "CloseRound" && !after ? absl::InternalError("gone") : absl::OkStatus();
  };
  DeliverHostile(2, 1);
  crew_.Deliver(0, 1);
  EXPECT_FALSE(crew_.at(1).Say(crew_.MakeUpdate(1, 1)).ok());
  crew_.Restart();
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kOpen);
  ScriptedClient hostile(&crew_.fleet, "c2", 5000);
  ASSERT_EQ(hostile.SayCheckIn({}, refused.update_id, 1), absl::OkStatus());
  EXPECT_EQ(hostile.All<Welcome>().back().verdict->outcome, Outcome::kPending);
  EXPECT_EQ(crew_.Record(2).resets, 0);
}

TEST_F(PolicyTest, ARoundOfRefusalsIsGivenUpAndTenPauseTheRun) {
  for (int64_t round = 1; round <= kMostUnusableRounds; ++round) {
    for (int64_t i = 0; i < 3; ++i) DeliverHostile(i, round);
    ASSERT_EQ(crew_.RoundStateOf(round), RoundState::kAborted) << round;
  }
  EXPECT_EQ(crew_.view().head.version, 0);
  EXPECT_EQ((*crew_.fleet.store()->Run())->state, RunState::kPaused);
  EXPECT_THAT((*crew_.fleet.store()->Run())->reason, HasSubstr("every update of the round was refused"));
  EXPECT_EQ(crew_.Record(1).resets, kMostUnusableRounds);
}

class PolicySetAside : public PolicyTest {
 protected:
  static RunConfig Quick() {
    RunConfig config = PolicyConfig(3);
    config.rounds.quorum = 2;
    config.clients.set_aside_after = 3;
    config.clients.set_aside_seconds = 100;
    return config;
  }
  PolicySetAside() : PolicyTest(Quick()) {}
};

TEST_F(PolicySetAside, WhoIsRefusedAgainAndAgain) {
  for (int64_t round = 1; round <= 3; ++round) RoundWithHostile(round);
  EXPECT_EQ(crew_.view().head.version, 3);
  EXPECT_EQ(crew_.StateOf(2), "set aside");
  EXPECT_THAT(crew_.Record(2).set_aside_reason, HasSubstr("3 failures in a row; the last: its update was refused"));
}

class PolicyKrum : public PolicyTest {
 protected:
  static RunConfig Robust() {
    RunConfig config = PolicyConfig(5);
    config.downstream = DownstreamMode::kDense;
    config.aggregation.rule = "krum";
    config.aggregation.byzantine = 1;
    return config;
  }
  PolicyKrum() : PolicyTest(Robust()) {}
};

TEST_F(PolicyKrum, ARoundThatIsLeftWithTooFewForItsRuleIsGivenUp) {
  DeliverHostile(2, 1);
  for (int64_t i : {0, 1, 3, 4}) crew_.Deliver(i, 1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  EXPECT_EQ(LastVerdict(2).outcome, Outcome::kReset);
  EXPECT_EQ(LastVerdict(0).outcome, Outcome::kNotApplied);
  EXPECT_THAT(EventsOf(crew_.fleet, "round_aborted").back().detail,
              HasSubstr("aggregation.rule = 'krum' needs 5 updates with these settings, and the round has 4"));
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 1);
}

// Honest clients whose updates are now and then too large: their books balance from each reset on, and what their
// updates are packed with is the same at both ends.
TEST(PolicyFleet, ResetsKeepTheBooksAndTheHistories) {
  RunConfig config = GridRunConfig(4, 60);
  config.codec.density = 0.1;
  config.codec.positions = std::string(kSharedPositions);
  config.policy.z_score = 1.2;
  config.clients.set_aside_after = 0;
  FleetSimulation fleet(config, 4);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t kill = 0; kill < 6; ++kill) {
    for (int64_t step = 0; step < 41 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    if (kill % 2 == 0) {
      fleet.KillCoordinator();
      ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    } else {
      fleet.KillClient(kill % 4);
      ASSERT_EQ(fleet.StartClient(kill % 4), absl::OkStatus());
    }
    for (int64_t i = 0; i < 4; ++i) {
      if (!fleet.connected(i)) fleet.Connect(i);
    }
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 60);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  int64_t resets = 0;
  for (int64_t i = 0; i < 4; ++i) {
    resets += fleet.store()->GetClient(i)->resets;
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), fleet.baseline(i)),
              absl::OkStatus())
        << i;
    EXPECT_EQ(CheckHistories(fleet.store(), fleet.codec(), i, *fleet.state(i)), absl::OkStatus()) << i;
  }
  EXPECT_GE(resets, 10);
  EXPECT_EQ(resets, static_cast<int64_t>(EventsOf(fleet, "update_rejected").size()));
  EXPECT_GT(fleet.updates_packed(), 100);
}

}  // namespace
}  // namespace terse
