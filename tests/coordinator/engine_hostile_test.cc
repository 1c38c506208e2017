// One hostile client under default settings: its updates are refused or not taken, it is set aside, and the run goes
// on.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int64_t kHostile = 3;  // client 3, after three honest ones

RunConfig HostileConfig(int64_t clients = 4) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.rounds.quorum = clients - 1;
  config.clients.set_aside_after = 10;
  config.clients.set_aside_seconds = 600;
  return config;
}

class HostileTest : public ::testing::Test {
 protected:
  explicit HostileTest(const RunConfig& config = HostileConfig()) : crew_(config, config.rounds.clients) {}

  // An update of client i with that content.
  Update MakeFrom(int64_t i, int64_t round, const std::vector<float>& delta) {
    Update update = crew_.MakeUpdate(i, round);
    update.message = *crew_.fleet.codec().Encode(delta);
    update.update_id =
        MakeUpdateId((*crew_.fleet.store()->Run())->lineage, round, i, crew_.LastApplied(i), update.message);
    return update;
  }
  // The update that client i would send honestly, times `factor`.
  Update MakeScaled(int64_t i, int64_t round, float factor) {
    std::vector<float> delta = GridDelta(i, round);
    for (float& value : delta) value *= factor;
    return MakeFrom(i, round, delta);
  }
  // `value` at one position and zero elsewhere.
  Update MakeLone(int64_t i, int64_t round, float value) {
    std::vector<float> delta(GridLayout().size(), 0.0f);
    delta[5] = value;
    return MakeFrom(i, round, delta);
  }
  void Say(int64_t i, const Update& update) { ASSERT_EQ(crew_.at(i).Say(update), absl::OkStatus()); }
  void DeliverHonest(int64_t round) {
    for (int64_t i = 0; i < kHostile; ++i) crew_.Deliver(i, round);
  }
  Verdict LastVerdict(int64_t i) {
    const std::vector<Verdict> all = crew_.at(i).All<Verdict>();
    EXPECT_FALSE(all.empty()) << "client " << i << " heard no verdict";
    return all.empty() ? Verdict() : all.back();
  }
  // Its update for round 1 was refused, the others' committed, and it is set aside.
  void ExpectRefused(int64_t client, const std::string& reason) {
    EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
    EXPECT_EQ((*crew_.fleet.store()->Rounds(1, 1))[0].updates, crew_.fleet.config().rounds.clients - 1);
    EXPECT_EQ(LastVerdict(client).outcome, Outcome::kReset);
    EXPECT_THAT(LastVerdict(client).reason, AllOf(HasSubstr(reason), HasSubstr("the client is set aside for ")));
    EXPECT_EQ(crew_.Record(client).resets, 1);
    EXPECT_EQ(crew_.Record(client).failures, 1);
    EXPECT_NE(crew_.Record(client).set_aside_until_us, 0);
    EXPECT_EQ(crew_.StateOf(client), "set aside");
    for (int64_t i = 0; i < crew_.fleet.config().rounds.clients; ++i) {
      if (i == client) continue;
      EXPECT_EQ(LastVerdict(i).outcome, Outcome::kApplied) << i;
      EXPECT_EQ(crew_.Record(i).failures, 0) << i;
    }
  }

  Crew crew_;
};

TEST_F(HostileTest, MeansOf3e38NeverReachTheModel) {
  Say(kHostile, MakeFrom(kHostile, 1, std::vector<float>(GridLayout().size(), 3e38f)));
  DeliverHonest(1);
  ExpectRefused(kHostile, "it has an element of ");
  for (const float weight : crew_.fleet.engine()->weights()) ASSERT_LT(std::abs(weight), 100);
  DeliverHonest(2);  // without it
  crew_.Pass(11);
  EXPECT_EQ(crew_.view().head.version, 2);
}

TEST_F(HostileTest, AFlippedSignTenTimesAsLargeIsRefusedByDefault) {
  Say(kHostile, MakeScaled(kHostile, 1, -10));
  DeliverHonest(1);
  ExpectRefused(kHostile, "times the median of the round's");
}

TEST_F(HostileTest, TheDefaultMeetsNoHonestClient) {
  for (int64_t round = 1; round <= 20; ++round) crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 20);
  EXPECT_THAT(EventsOf(crew_.fleet, "update_rejected"), IsEmpty());
}

class NobodyIsSetAside : public HostileTest {
 protected:
  static RunConfig Never() {
    RunConfig config = HostileConfig();
    config.clients.set_aside_after = 0;
    return config;
  }
  NobodyIsSetAside() : HostileTest(Never()) {}
};

TEST_F(NobodyIsSetAside, WhereTheRunSaysNever) {
  Say(kHostile, MakeScaled(kHostile, 1, -10));
  DeliverHonest(1);
  EXPECT_EQ(LastVerdict(kHostile).outcome, Outcome::kReset);
  EXPECT_EQ(crew_.StateOf(kHostile), "training");
}

// Where nobody else sends, a vote by coordinate is that of the one who does.
class VotesTest : public HostileTest, public ::testing::WithParamInterface<std::string> {
 protected:
  static RunConfig Votes(const std::string& rule) {
    RunConfig config = HostileConfig(5);
    config.downstream = DownstreamMode::kDense;
    config.aggregation.rule = rule;
    return config;
  }
  VotesTest() : HostileTest(Votes(GetParam())) {}
};

TEST_P(VotesTest, ALoneVoteOf3e38IsRefusedAndBooked) {
  Say(kHostile, MakeLone(kHostile, 1, 3e38f));
  for (int64_t i : {0, 1, 2, 4}) crew_.Deliver(i, 1);
  ExpectRefused(kHostile, "it has an element of 3");
  EXPECT_THAT(EventsOf(crew_.fleet, "round_aborted"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Rules, VotesTest, ::testing::Values("median", "trimmed_mean"),
                         [](const auto& info) { return info.param; });

// Two clients, whose updates nobody can compare, and which each may send no more than the bound at a time.
class UnusableTest : public HostileTest {
 protected:
  UnusableTest() : HostileTest(HostileConfig(2)) {}

  void DeliverFarOut() {
    const int64_t round = crew_.view().round;
    for (int64_t i : {0, 1}) Say(i, MakeLone(i, round, 9e14f));
  }
  RunRecord Run() { return **crew_.fleet.store()->Run(); }
};

TEST_F(UnusableTest, AWeightBeyondTheBoundAbortsTheRound) {
  DeliverFarOut();
  ASSERT_EQ(crew_.view().head.version, 1);
  const Id128 before = crew_.view().head.model_hash;
  DeliverFarOut();
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kAborted);
  EXPECT_THAT(LastVerdict(0).reason, HasSubstr("a step takes a weight to 1.8"));
  EXPECT_EQ(crew_.view().head.model_hash, before);
}

TEST_F(UnusableTest, TenSuchRoundsInARowPauseTheRunAndItCanBeResumed) {
  DeliverFarOut();
  for (int64_t k = 0; k < kMostUnusableRounds; ++k) {
    EXPECT_EQ(Run().state, RunState::kActive) << k;
    DeliverFarOut();
  }
  EXPECT_EQ(Run().state, RunState::kPaused);
  EXPECT_THAT(Run().reason, AllOf(StartsWith("10 rounds in a row gave no model: "), HasSubstr("too far to go on")));
  EXPECT_EQ(EventsOf(crew_.fleet, "run_paused").size(), 1u);
  EXPECT_EQ(crew_.at(0).Count<Finished>(), 0);
  EXPECT_EQ(crew_.view().phase, "paused");

  crew_.Restart();  // a pause is stored
  for (int64_t i : {0, 1}) crew_.Join(i);
  EXPECT_EQ(crew_.view().phase, "paused");
  ASSERT_EQ(crew_.fleet.Handle(ResumeRequested{}), absl::OkStatus());
  EXPECT_EQ(Run().state, RunState::kActive);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 2);
  DeliverFarOut();
  EXPECT_EQ(Run().state, RunState::kActive) << "the count begins anew";
}

// With a buffer of one no round has anything to compare; the clients' last updates have.
class LoneUpdates : public HostileTest {
 protected:
  static RunConfig Buffered() {
    RunConfig config = HostileConfig();
    config.rounds.buffered = true;
    config.rounds.cohort = config.rounds.quorum = 1;
    config.rounds.staleness = 10;
    return config;
  }
  LoneUpdates() : HostileTest(Buffered()) {}
};

TEST_F(LoneUpdates, AreComparedWithWhatTheOthersSentLast) {
  DeliverHonest(1);
  ASSERT_EQ(crew_.view().head.version, 3);
  Say(kHostile, MakeScaled(kHostile, 1, -10));
  EXPECT_EQ(crew_.view().head.version, 3);
  EXPECT_EQ(LastVerdict(kHostile).outcome, Outcome::kReset);
  EXPECT_THAT(LastVerdict(kHostile).reason, HasSubstr("times the median of what clients sent last"));
  EXPECT_EQ(crew_.StateOf(kHostile), "set aside");
  for (int64_t i = 0; i < kHostile; ++i) EXPECT_EQ(crew_.Record(i).updates_applied, 1);
}

TEST_F(LoneUpdates, ASecondUpdateForTheSameWorkDoesNotCount) {
  crew_.Deliver(kHostile, 1);
  ASSERT_EQ(crew_.view().head.version, 1);
  Say(kHostile, MakeScaled(kHostile, 1, 2));
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(LastVerdict(kHostile).outcome, Outcome::kNotApplied);
  EXPECT_EQ(LastVerdict(kHostile).reason, "the client was not given the work of round 1");
  crew_.Deliver(kHostile, 2);
  EXPECT_EQ(crew_.view().head.version, 2) << "what it was given counts";
}

TEST_F(LoneUpdates, WhoIsSetAsideIsToldSo) {
  crew_.Deliver(0, 1);
  const int64_t until = crew_.fleet.clock()->NowMicros() + 50'000'000;
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{kHostile, until, "its disk is being replaced"}), absl::OkStatus());
  crew_.Deliver(kHostile, 1);
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(LastVerdict(kHostile).outcome, Outcome::kNotApplied);
  EXPECT_THAT(LastVerdict(kHostile).reason, HasSubstr("set aside (its disk is being replaced)"));
}

class AsideTest : public HostileTest {
 protected:
  void SetAside(int64_t client) {
    const int64_t until = crew_.fleet.clock()->NowMicros() + 50'000'000;
    ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{client, until, "by command"}), absl::OkStatus());
  }
};

TEST_F(AsideTest, UpdatesOfWhoIsSetAsideDoNotCountAndFoldForward) {
  SetAside(kHostile);
  const Update update = crew_.MakeUpdate(kHostile, 1);
  Say(kHostile, update);  // it was given the work before
  EXPECT_EQ(crew_.at(kHostile).Count<Receipt>(), 0);
  EXPECT_EQ(LastVerdict(kHostile).outcome, Outcome::kNotApplied);
  EXPECT_EQ(LastVerdict(kHostile).update_id, update.update_id);
  EXPECT_EQ(LastVerdict(kHostile).reason,
            "the client is set aside (by command), and its updates do not count until it is readmitted");
  EXPECT_EQ(crew_.Record(kHostile).updates_not_applied, 1);
  EXPECT_EQ(crew_.Record(kHostile).failures, 0);
  EXPECT_EQ(EventsOf(crew_.fleet, "update_turned_away").size(), 1u);
  crew_.Deliver(0, 1);
  crew_.Deliver(1, 1);
  crew_.Pass(11);
  EXPECT_EQ(crew_.view().head.version, 0) << "a quorum is three, and only two count";
  // Once it is readmitted it has work again, and that counts.
  crew_.Restart();
  for (int64_t i = 0; i < 4; ++i) crew_.Join(i);
  ASSERT_EQ(crew_.fleet.Handle(SetAsideRequested{kHostile, 0, "done"}), absl::OkStatus());
  crew_.DeliverAll();
  EXPECT_EQ(crew_.Record(kHostile).updates_applied, 1);
}

TEST_F(AsideTest, AClaimToOweAnUpdateDoesNotHelp) {
  SetAside(kHostile);
  const Update update = crew_.MakeUpdate(kHostile, 1);
  ScriptedClient again(&crew_.fleet, "c3", 5000);
  ASSERT_EQ(again.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  EXPECT_EQ(again.All<Welcome>().back().verdict->outcome, Outcome::kPending);
  ASSERT_EQ(again.SayReady(), absl::OkStatus());
  ASSERT_EQ(again.Say(update), absl::OkStatus());
  EXPECT_EQ(again.Count<Receipt>(), 0);
  EXPECT_EQ(again.All<Verdict>().back().outcome, Outcome::kNotApplied);
  EXPECT_EQ(again.Count<Assignment>(), 0);
}

// Two of four are drawn for a round.
class CohortTest : public HostileTest {
 protected:
  static RunConfig Two() {
    RunConfig config = HostileConfig();
    config.rounds.selection = Selection::kRandom;
    config.rounds.cohort = config.rounds.invited = config.rounds.quorum = 2;
    return config;
  }
  CohortTest() : HostileTest(Two()) {}

  int64_t Uninvited() {
    int64_t i = 0;
    while (crew_.Working(1).count(i) > 0) ++i;
    return i;
  }
};

TEST_F(CohortTest, WhoWasNotInvitedDoesNotCount) {
  const int64_t i = Uninvited();
  crew_.Deliver(i, 1);
  EXPECT_EQ(crew_.at(i).Count<Receipt>(), 0);
  EXPECT_EQ(LastVerdict(i).outcome, Outcome::kNotApplied);
  EXPECT_EQ(LastVerdict(i).reason, "the client was not given the work of round 1");
  EXPECT_EQ(crew_.Record(i).failures, 1);
  crew_.DeliverAll();
  EXPECT_EQ(crew_.view().head.version, 1);
  EXPECT_EQ(crew_.Record(i).updates_applied, 0);
}

TEST_F(CohortTest, NorWhoOnlyClaimsToOwe) {
  const int64_t i = Uninvited();
  const Update update = crew_.MakeUpdate(i, 1);
  ScriptedClient liar(&crew_.fleet, absl::StrCat("c", i), 5000);
  ASSERT_EQ(liar.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  ASSERT_EQ(liar.SayReady(), absl::OkStatus());
  ASSERT_EQ(liar.Say(update), absl::OkStatus());
  EXPECT_EQ(liar.Count<Receipt>(), 0);
  EXPECT_EQ(liar.All<Verdict>().back().outcome, Outcome::kNotApplied);
  EXPECT_EQ(liar.Count<Assignment>(), 0) << "its claim brought it no place";
}

TEST_F(CohortTest, WhoOwesAnUpdateAfterARestartCounts) {
  const std::set<int64_t> working = crew_.Working(1);
  const int64_t i = *working.begin();
  const Update update = crew_.MakeUpdate(i, 1);
  crew_.Restart();
  ScriptedClient owes(&crew_.fleet, absl::StrCat("c", i), 5000);
  ASSERT_EQ(owes.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  ASSERT_EQ(owes.SayReady(), absl::OkStatus());
  ASSERT_EQ(owes.Say(update), absl::OkStatus());
  EXPECT_EQ(owes.Count<Receipt>(), 1);
}

}  // namespace
}  // namespace terse
