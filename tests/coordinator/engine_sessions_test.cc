// Tests how clients join: check-in, refusals, catching up, what becomes of a pending update.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// The verdict that came with the welcome; PENDING about nothing when there was none.
Verdict FirstVerdict(const ScriptedClient& client) { return client.All<Welcome>().at(0).verdict.value_or(Verdict{}); }

RunConfig SessionsConfig(int64_t clients, int64_t quorum) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.rounds.quorum = quorum;
  return config;
}

class Joining : public ::testing::Test {
 protected:
  explicit Joining(RunConfig config = SessionsConfig(2, 1)) : fleet_(std::move(config), 0) {
    EXPECT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  }

  ScriptedClient NewClient(const std::string& name) { return ScriptedClient(&fleet_, name, next_session_++); }
  ScriptedClient Joined(const std::string& name, Id128 prev_applied = {}) {
    ScriptedClient client = NewClient(name);
    EXPECT_EQ(client.SayCheckIn(prev_applied), absl::OkStatus());
    EXPECT_EQ(client.SayReady(), absl::OkStatus());
    return client;
  }
  Id128 LastApplied(int64_t client) { return fleet_.store()->GetClient(client)->last_applied; }
  // One committed round of clients 0 and 1 ("a" and "b").
  void CommitRound(ScriptedClient& a, ScriptedClient& b) {
    const EngineView view = fleet_.engine()->View();
    ASSERT_EQ(a.Say(a.MakeUpdate(view.round, 0, view.round, LastApplied(0))), absl::OkStatus());
    ASSERT_EQ(b.Say(b.MakeUpdate(view.round, 1, view.round, LastApplied(1))), absl::OkStatus());
    ASSERT_EQ(fleet_.engine()->View().head.version, view.head.version + 1);
  }
  void Restart() {
    fleet_.KillCoordinator();
    ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  }

  FleetSimulation fleet_;
  SessionId next_session_ = 1001;
};

TEST_F(Joining, AnUnknownProtocolVersionIsRefusedByName) {
  ScriptedClient client = NewClient("a");
  CheckIn message;
  message.name = "a";
  message.protocol_version = 7;
  ASSERT_EQ(client.Say(message), absl::OkStatus());
  ASSERT_EQ(client.Count<Refusal>(), 1);
  EXPECT_THAT(client.All<Refusal>()[0].reason, HasSubstr("protocol version 7"));
  EXPECT_FALSE(client.All<Refusal>()[0].retry);
  EXPECT_EQ(EventsOf(fleet_, "client_refused").size(), 1);
  EXPECT_TRUE(fleet_.store()->Clients()->empty());
}

TEST_F(Joining, WhereAClientTrainsAndItsNormAreKnownOnceItHasSaidThem) {
  ScriptedClient a = NewClient("a"), b = Joined("b");
  ASSERT_EQ(a.SayCheckIn(), absl::OkStatus());
  const auto view_of = [&](int64_t client) {
    for (const SessionView& session : fleet_.engine()->View().sessions) {
      if (session.client == client) return session;
    }
    return SessionView();
  };
  EXPECT_EQ(view_of(1).device, "") << "a client of an earlier release does not say it";
  Ready ready{0, fleet_.engine()->View().head.model_hash, GridLayout().Hash(), 1};
  ready.device = "cuda:0";
  ASSERT_EQ(a.Say(ready), absl::OkStatus());
  EXPECT_EQ(view_of(1).device, "cuda:0");
  EXPECT_FALSE(view_of(1).residual_norm.has_value());
  ready.device = "";
  ASSERT_EQ(a.Say(ready), absl::OkStatus());
  EXPECT_EQ(view_of(1).device, "cuda:0") << "as said before";
  EXPECT_EQ(view_of(0).device, "");

  Update update = a.MakeUpdate(1, 1, 1);
  update.norm_code = 72;
  ASSERT_EQ(a.Say(update), absl::OkStatus());
  EXPECT_EQ(view_of(1).residual_norm, 4.0);
  update.norm_code = absl::nullopt;
  ASSERT_EQ(a.Say(update), absl::OkStatus());
  EXPECT_EQ(view_of(1).residual_norm, 4.0) << "as said before";
  // The client does not repeat what it said with an update that was refused.
  update.message += "x";
  update.norm_code = 0;
  a.Say(update).IgnoreError();
  EXPECT_FALSE(view_of(0).residual_norm.has_value());
  ScriptedClient again = Joined("a", LastApplied(1));
  EXPECT_EQ(view_of(1).device, "") << "said once a connection";
  EXPECT_FALSE(view_of(1).residual_norm.has_value());
}

TEST_F(Joining, UnusableNamesAreRefused) {
  for (const std::string& name : {std::string(), std::string(".a"), std::string("a b"), std::string("a/b"),
                                  std::string("\0", 1), std::string(65, 'x'), std::string(1 << 20, '\n')}) {
    ScriptedClient client = NewClient(name);
    ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
    ASSERT_EQ(client.Count<Refusal>(), 1);
    EXPECT_LT(client.All<Refusal>()[0].reason.size(), 1000);
    EXPECT_EQ(client.Count<Welcome>(), 0);
  }
  EXPECT_TRUE(fleet_.store()->Clients()->empty());
}

TEST_F(Joining, AFullCohortTakesNoMore) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  ScriptedClient c = NewClient("c");
  ASSERT_EQ(c.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(c.Count<Welcome>(), 0);
  ASSERT_EQ(c.Count<Refusal>(), 1);
  EXPECT_FALSE(c.All<Refusal>()[0].retry);
  EXPECT_THAT(c.All<Refusal>()[0].reason, HasSubstr("data.shards"));
  EXPECT_EQ(fleet_.engine()->View().sessions.size(), 2);
}

TEST_F(Joining, ASessionBeginsWithACheckInAndHasOnlyOne) {
  ScriptedClient client = NewClient("a");
  ASSERT_EQ(client.SayReady(), absl::OkStatus());
  EXPECT_EQ(client.Count<Refusal>(), 1);
  ScriptedClient other = NewClient("b");
  ASSERT_EQ(other.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(other.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(other.Count<Welcome>(), 1);
  EXPECT_EQ(other.Count<Refusal>(), 1);
}

TEST_F(Joining, ANewerConnectionReplacesTheOlder) {
  ScriptedClient first = Joined("a");
  ScriptedClient second = Joined("a");
  ASSERT_EQ(first.Count<Refusal>(), 1);
  EXPECT_THAT(first.All<Refusal>()[0].reason, HasSubstr("'a'"));
  EXPECT_EQ(second.All<Welcome>().at(0).client_index, 0);
  EXPECT_EQ(fleet_.engine()->View().sessions.size(), 1);
  // Messages of the older session are not the client's any more, and its end does not mean that the client left.
  const int64_t receipts = second.Count<Receipt>();
  ScriptedClient b = Joined("b");
  ASSERT_EQ(first.Say(first.MakeUpdate(1, 0, 0)), absl::OkStatus());
  ASSERT_EQ(first.Disconnect(), absl::OkStatus());
  EXPECT_EQ(second.Count<Receipt>(), receipts);
  EXPECT_TRUE(EventsOf(fleet_, "client_left").empty());
  CommitRound(second, b);
  EXPECT_EQ(second.Count<Downstream>(), 1);
}

// The coordinator may accept two connections of a client in the other order than the client began them.
TEST_F(Joining, AProcessSaysWhichOfItsConnectionsIsTheNewest) {
  ScriptedClient second = NewClient("a");
  ScriptedClient first = NewClient("a");
  ScriptedClient third = NewClient("a");
  for (ScriptedClient* one : {&first, &second, &third}) one->process = {7, 7};
  first.connection = 1;
  second.connection = 2;
  third.connection = 3;
  ASSERT_EQ(second.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(first.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(first.Count<Refusal>(), 1);
  EXPECT_TRUE(first.All<Refusal>()[0].retry);
  EXPECT_EQ(second.Count<Refusal>(), 0);
  // Its newest connection gets the name even when it speaks of another past: nobody else can be meant.
  ASSERT_EQ(third.SayCheckIn({1, 1}), absl::OkStatus());
  EXPECT_EQ(third.Count<Welcome>(), 1);
  ASSERT_EQ(second.Count<Refusal>(), 1);
  EXPECT_TRUE(second.All<Refusal>()[0].retry) << "the process itself is not refused";
  ScriptedClient other = NewClient("a");
  other.process = {7, 8};
  other.connection = 1;
  ASSERT_EQ(other.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(other.Count<Welcome>(), 1);
  ASSERT_EQ(third.Count<Refusal>(), 1);
  EXPECT_FALSE(third.All<Refusal>()[0].retry) << "two processes would take the name from each other for ever";
}

// The first bytes of a connection may be under way for longer than its client lives.
TEST_F(Joining, LateWordsOfADeadConnectionTakeNobodysPlace) {
  ScriptedClient before = NewClient("a");
  ScriptedClient a = Joined("a");
  ScriptedClient b = Joined("b");
  ASSERT_EQ(before.SayCheckIn(), absl::OkStatus());  // this connection began earlier
  CommitRound(a, b);
  ASSERT_EQ(a.Say(a.MakeUpdate(2, 0, 2, LastApplied(0))), absl::OkStatus());
  ScriptedClient after = NewClient("a");
  ASSERT_EQ(after.SayCheckIn(), absl::OkStatus());  // this one speaks of a past that would be a reset
  for (const ScriptedClient* late : {&before, &after}) {
    EXPECT_EQ(late->Count<Welcome>(), 0);
    ASSERT_EQ(late->Count<Refusal>(), 1);
    EXPECT_TRUE(late->All<Refusal>()[0].retry);
    EXPECT_THAT(late->All<Refusal>()[0].reason, HasSubstr("every client needs a name (and a certificate) of its own"));
  }
  EXPECT_EQ(a.Count<Refusal>(), 0);
  EXPECT_TRUE(EventsOf(fleet_, "residual_lost").empty());
  ASSERT_EQ(b.Say(b.MakeUpdate(2, 1, 2, LastApplied(1))), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, 2) << "the update of the working connection was dropped";
}

TEST_F(Joining, AnotherModelIsRefused) {
  ScriptedClient client = NewClient("a");
  ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(client.Say(Ready{0, {}, HashBytes("another layout")}), absl::OkStatus());
  ASSERT_EQ(client.Count<Refusal>(), 1);
  EXPECT_THAT(client.All<Refusal>()[0].reason, HasSubstr("tensors"));
}

TEST_F(Joining, DriftLeadsToAResyncAndACount) {
  ScriptedClient a = NewClient("a");
  ASSERT_EQ(a.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(a.Say(Ready{0, HashBytes("other weights"), GridLayout().Hash()}), absl::OkStatus());
  ASSERT_EQ(a.Count<Resync>(), 1);
  EXPECT_EQ(a.Count<Assignment>(), 0);
  EXPECT_EQ(EventsOf(fleet_, "model_drift").size(), 1);
  EXPECT_EQ(fleet_.engine()->View().sessions[0].state, "syncing");
}

TEST_F(Joining, DriftThatTheClientSeesIsCountedAndItGetsWorkAgain) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  CommitRound(a, b);
  a.Forget();
  // Its own weights did not match the downstream message, so it let the assignment pass that came with it.
  ASSERT_EQ(a.Say(Ready{absl::nullopt, {}, GridLayout().Hash()}), absl::OkStatus());
  EXPECT_EQ(EventsOf(fleet_, "model_drift").size(), 1);
  ASSERT_EQ(a.Count<Resync>(), 1);
  ASSERT_EQ(a.SayReady(), absl::OkStatus());
  ASSERT_EQ(a.Count<Assignment>(), 1);
  EXPECT_EQ(a.All<Assignment>()[0].round, 2);
}

class JoiningWithoutShards : public Joining {
 protected:
  JoiningWithoutShards() : Joining(WithoutShards()) {}
  static RunConfig WithoutShards() {
    RunConfig config = SessionsConfig(2, 1);
    config.data.partition = "all";
    return config;
  }
};

TEST_F(JoiningWithoutShards, AStateDirectoryUnderAnotherNameDoesNotCountTwice) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  const Update update = a.MakeUpdate(1, 0, 0);
  ASSERT_EQ(a.Say(update), absl::OkStatus());
  ASSERT_EQ(b.Say(b.MakeUpdate(1, 1, 0)), absl::OkStatus());
  // Its process was killed before it heard the verdict, and goes on as "c", which has no past here either.
  ScriptedClient c = NewClient("c");
  ASSERT_EQ(c.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  const absl::optional<Verdict> verdict = c.All<Welcome>().at(0).verdict;
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->outcome, Outcome::kReset);
  EXPECT_THAT(verdict->reason, HasSubstr("another name"));
}

class JoiningWithMoreShards : public Joining {
 protected:
  JoiningWithMoreShards() : Joining(WithShards(3)) {}
  static RunConfig WithShards(int64_t shards) {
    RunConfig config = SessionsConfig(2, 1);
    config.data.partition = "iid";
    config.data.shards = shards;
    return config;
  }
};

// A fleet of two grows while the run goes on, shrinks, and has who left back.
TEST_F(JoiningWithMoreShards, AClientJoinsLaterAndGetsWork) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  CommitRound(a, b);
  ScriptedClient c = Joined("c");
  EXPECT_EQ(c.All<Welcome>().at(0).client_index, 2);
  ASSERT_EQ(b.Disconnect(), absl::OkStatus());
  ASSERT_EQ(a.Say(a.MakeUpdate(2, 0, 1, LastApplied(0))), absl::OkStatus());
  ASSERT_EQ(c.Say(c.MakeUpdate(2, 2, 1)), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, 2);
  ASSERT_EQ(c.Count<Verdict>(), 1);
  EXPECT_EQ(c.All<Verdict>()[0].outcome, Outcome::kApplied);
  ScriptedClient again = Joined("b", LastApplied(1));
  EXPECT_EQ(again.All<Welcome>().at(0).client_index, 1) << "its shard is still its own";
  ScriptedClient d = NewClient("d");
  ASSERT_EQ(d.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(d.Count<Refusal>(), 1);
  EXPECT_THAT(d.All<Refusal>()[0].reason, HasSubstr("into 3 shards"));
  EXPECT_EQ(fleet_.store()->Clients()->size(), 3) << "names of clients that get nothing do not fill the store";
}

TEST_F(Joining, VersionsThatNeverWereLeadToAResync) {
  ScriptedClient a = NewClient("a");
  ASSERT_EQ(a.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(a.Say(Ready{5, {}, GridLayout().Hash()}), absl::OkStatus());
  ASSERT_EQ(a.Say(Ready{std::numeric_limits<int64_t>::max(), {}, GridLayout().Hash()}), absl::OkStatus());
  ASSERT_EQ(a.Say(Ready{-1, {}, GridLayout().Hash()}), absl::OkStatus());
  EXPECT_EQ(a.Count<Resync>(), 3);
}

RunConfig ShortLog() {
  RunConfig config = SessionsConfig(2, 1);
  config.checkpoint_every = 3;
  config.checkpoint_keep = 1;
  return config;
}

class CatchingUp : public Joining {
 protected:
  CatchingUp() : Joining(ShortLog()) {
    ScriptedClient a = Joined("a"), b = Joined("b");
    for (int round = 0; round < 5; ++round) CommitRound(a, b);  // checkpoint 3, log 4 and 5
    EXPECT_EQ(fleet_.store()->NewestCheckpointFile()->version, 3);
  }
  ScriptedClient At(absl::optional<int64_t> version) {
    ScriptedClient client = NewClient("a");
    EXPECT_EQ(client.SayCheckIn(LastApplied(0)), absl::OkStatus());
    EXPECT_EQ(client.Say(Ready{version, {}, GridLayout().Hash()}), absl::OkStatus());
    return client;
  }
};

TEST_F(CatchingUp, TheLogServesWhoIsNear) {
  const ScriptedClient client = At(3);
  EXPECT_EQ(client.Count<Resync>(), 0);
  ASSERT_EQ(client.Count<Downstream>(), 2);
  EXPECT_EQ(client.All<Downstream>()[0].version, 4);
  EXPECT_EQ(client.All<Downstream>()[1].version, 5);
  EXPECT_EQ(client.All<Downstream>()[1].model_hash, fleet_.engine()->View().head.model_hash);
  EXPECT_EQ(client.Count<Assignment>(), 1);
}

TEST_F(CatchingUp, TheLogServesWhoIsBehindTheCheckpointWhereItIsCheaper) {
  const ScriptedClient client = At(0);
  EXPECT_EQ(client.Count<Resync>(), 0);
  EXPECT_EQ(client.Count<Downstream>(), 5);
  EXPECT_EQ(client.Count<Assignment>(), 1);
}

// A reader that is slow costs references to what it was sent, and no more of them with every round.
TEST_F(CatchingUp, WhoHasNotReadWaitsForTheLog) {
  ScriptedClient slow = At(5);
  ScriptedClient b = Joined("b", LastApplied(1));
  const int64_t heard = slow.Count<Downstream>();
  slow.link().waiting_bytes = kCatchUpBytes + 1;
  for (int64_t round = 6; round <= 8; ++round) {
    ASSERT_EQ(b.Say(b.MakeUpdate(round, 1, round, LastApplied(1))), absl::OkStatus());
    ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
    ASSERT_EQ(fleet_.engine()->View().head.version, round) << "the others go on without it";
  }
  EXPECT_EQ(slow.Count<Downstream>(), heard);
  slow.link().waiting_bytes = 0;
  ASSERT_EQ(slow.Drain(), absl::OkStatus());
  EXPECT_GT(slow.Count<Downstream>() + slow.Count<Resync>(), heard) << "then it gets the log, or a checkpoint";
  EXPECT_EQ(slow.Count<Refusal>(), 0);
}

class CatchingUpInParts : public CatchingUp {
 protected:
  static constexpr int64_t kPartBytes = 1;  // less than any message: one at a time
  CatchingUpInParts() {
    fleet_.set_catch_up_bytes(kPartBytes);
    Restart();
  }
};

TEST_F(CatchingUpInParts, TheNextFollowsWhenOneHasLeft) {
  ScriptedClient client = At(0);
  for (int64_t version = 1; version <= 5; ++version) {
    ASSERT_EQ(client.Count<Downstream>(), version);
    EXPECT_EQ(client.All<Downstream>().back().version, version);
    EXPECT_EQ(client.Count<Assignment>(), version == 5);
    ASSERT_EQ(client.Drain(), absl::OkStatus());
  }
  EXPECT_EQ(client.Count<Downstream>(), 5);
  EXPECT_FALSE(client.link().tell_when_drained);
}

TEST_F(CatchingUpInParts, NewVersionsWaitForTheirTurn) {
  ScriptedClient behind = At(3);
  ScriptedClient b = Joined("b", LastApplied(1));
  ASSERT_EQ(b.Say(b.MakeUpdate(6, 1, 6, LastApplied(1))), absl::OkStatus());
  ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
  ASSERT_EQ(fleet_.engine()->View().head.version, 6);
  EXPECT_EQ(behind.Count<Downstream>(), 1);
  ASSERT_EQ(behind.Drain(), absl::OkStatus());
  EXPECT_EQ(behind.Count<Downstream>(), 2);
  ASSERT_EQ(behind.Drain(), absl::OkStatus());
  ASSERT_EQ(behind.Count<Downstream>(), 3);
  EXPECT_EQ(behind.All<Downstream>().back().version, 6);
  EXPECT_EQ(behind.Count<Assignment>(), 1);
}

TEST_F(CatchingUpInParts, TheEndWaitsToo) {
  ScriptedClient client = At(0);
  ASSERT_EQ(fleet_.Handle(StopRequested{}), absl::OkStatus());
  for (int64_t version = 1; version <= 5; ++version) {
    ASSERT_EQ(client.Count<Downstream>(), version);
    EXPECT_EQ(client.Count<Finished>(), version == 5);
    ASSERT_EQ(client.Drain(), absl::OkStatus());
  }
  EXPECT_EQ(client.Count<Finished>(), 1);
}

// It may ask again before all of it has left: what was on its way is of no use to it then.
TEST_F(CatchingUpInParts, ReadyBeginsAnew) {
  ScriptedClient client = At(0);
  ASSERT_EQ(client.Count<Downstream>(), 1);
  ASSERT_EQ(client.Say(Ready{absl::nullopt, {}, GridLayout().Hash()}), absl::OkStatus());
  EXPECT_EQ(client.Count<Resync>(), 1);
  ASSERT_EQ(client.Drain(), absl::OkStatus());
  EXPECT_EQ(client.Count<Downstream>(), 1);
}

TEST_F(CatchingUp, TheCheckpointServesWhoHoldsNothing) {
  const ScriptedClient client = At(absl::nullopt);
  ASSERT_EQ(client.Count<Resync>(), 1);
  EXPECT_EQ(client.All<Resync>()[0].checkpoint_version, 3);
  EXPECT_EQ(client.Count<Downstream>() + client.Count<Assignment>(), 0);
}

TEST_F(CatchingUp, ALogThatIsCutOffMeanwhileLeadsToTheCheckpoint) {
  // A new process has no recent messages in memory.
  fleet_.KillCoordinator();
  ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
  fleet_.store()->fault = [](absl::string_view call, bool after) {
    return call == "ReadLog" && !after ? absl::OutOfRangeError("pruned") : absl::OkStatus();
  };
  const ScriptedClient client = At(4);
  ASSERT_TRUE(fleet_.coordinator_up());
  EXPECT_EQ(client.Count<Resync>(), 1);
}

TEST_F(Joining, AVerdictThatWasLostIsGivenAtCheckIn) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  const Update update = a.MakeUpdate(1, 0, 1);
  CommitRound(a, b);
  ScriptedClient again = NewClient("a");
  ASSERT_EQ(again.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  const Welcome welcome = again.All<Welcome>().at(0);
  ASSERT_TRUE(welcome.verdict.has_value());
  EXPECT_EQ(welcome.verdict->outcome, Outcome::kApplied);
  EXPECT_EQ(welcome.verdict->update_id, update.update_id);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 0);
}

TEST_F(Joining, APendingUpdateIsSentAgainAfterARestart) {
  absl::optional<Update> update;
  {
    ScriptedClient a = Joined("a"), b = Joined("b");
    update = a.MakeUpdate(1, 0, 0);
    ASSERT_EQ(a.Say(*update), absl::OkStatus());
  }
  Restart();
  EXPECT_EQ(fleet_.engine()->View().round, 1);
  ScriptedClient a = NewClient("a");
  ASSERT_EQ(a.SayCheckIn({}, update->update_id, 1), absl::OkStatus());
  ASSERT_EQ(FirstVerdict(a).outcome, Outcome::kPending);
  ASSERT_EQ(a.SayReady(), absl::OkStatus());
  EXPECT_EQ(a.Count<Assignment>(), 0);  // it owes this round's update
  ASSERT_EQ(a.Say(*update), absl::OkStatus());
  EXPECT_EQ(a.Count<Receipt>(), 1);
  ScriptedClient b = Joined("b");
  ASSERT_EQ(b.Say(b.MakeUpdate(1, 1, 0)), absl::OkStatus());
  EXPECT_EQ(LastApplied(0), update->update_id);
}

TEST_F(Joining, AClientThatDownloadsHearsItsVerdictAtOnce) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  ASSERT_EQ(a.Say(a.MakeUpdate(1, 0, 0)), absl::OkStatus());
  ASSERT_EQ(a.Say(Ready{absl::nullopt, {}, GridLayout().Hash()}), absl::OkStatus());
  ASSERT_EQ(a.Count<Resync>(), 1);
  ASSERT_EQ(b.Say(b.MakeUpdate(1, 1, 0)), absl::OkStatus());
  ASSERT_EQ(a.Count<Verdict>(), 1);  // though nothing else is sent that it could travel with
  EXPECT_EQ(a.Count<Downstream>(), 0);
}

TEST_F(Joining, AnAbortedRoundsUpdateIsNotAppliedAtCheckIn) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  const Update update = a.MakeUpdate(1, 0, 0);
  ASSERT_EQ(a.Disconnect(), absl::OkStatus());
  ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
  ScriptedClient again = NewClient("a");
  ASSERT_EQ(again.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  EXPECT_EQ(FirstVerdict(again).outcome, Outcome::kNotApplied);
}

TEST_F(Joining, AnotherPastIsReset) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  CommitRound(a, b);
  const Update stale = a.MakeUpdate(2, 0, 9, HashBytes("another past"));
  ASSERT_EQ(a.Disconnect(), absl::OkStatus());
  ScriptedClient other = NewClient("a");
  ASSERT_EQ(other.SayCheckIn(HashBytes("another past"), stale.update_id, 2), absl::OkStatus());
  const Welcome welcome = other.All<Welcome>().at(0);
  ASSERT_TRUE(welcome.verdict.has_value());
  EXPECT_EQ(welcome.verdict->outcome, Outcome::kReset);
  EXPECT_EQ(welcome.verdict->last_applied, LastApplied(0));
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 1);
  EXPECT_EQ(EventsOf(fleet_, "residual_lost").size(), 1);
  // An empty directory under a name that has a past is another past as well; a state of another run counts as empty.
  ASSERT_EQ(other.Disconnect(), absl::OkStatus());
  ScriptedClient fresh = NewClient("a");
  ASSERT_EQ(fresh.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(FirstVerdict(fresh).outcome, Outcome::kReset);
  CheckIn foreign;
  foreign.name = "a";
  foreign.lineage = HashBytes("another run");
  foreign.prev_applied = LastApplied(0);
  ASSERT_EQ(fresh.Disconnect(), absl::OkStatus());
  ScriptedClient stranger = NewClient("a");
  ASSERT_EQ(stranger.Say(foreign), absl::OkStatus());
  EXPECT_EQ(FirstVerdict(stranger).outcome, Outcome::kReset);
}

// A client that comes from another coordinator of the same root.
CheckIn FromARelay(const std::string& name, Id128 family) {
  CheckIn message;
  message.name = name;
  message.lineage = HashBytes("a relay");
  message.family = family;
  message.prev_applied = HashBytes("what the relay applied");
  message.pending_update_id = HashBytes("what it has not settled");
  message.pending_round = 1;
  return message;
}

TEST_F(Joining, WhoComesFromTheFamilyTakesItsResidualAlong) {
  const Id128 ours = (*fleet_.store()->Run())->lineage;
  ScriptedClient client = NewClient("a");
  ASSERT_EQ(client.Say(FromARelay("a", ours)), absl::OkStatus());
  ASSERT_EQ(client.Count<Welcome>(), 1);
  const Welcome welcome = client.All<Welcome>()[0];
  EXPECT_FALSE(welcome.verdict.has_value());
  EXPECT_EQ(welcome.lineage, ours);
  EXPECT_EQ(welcome.family, ours);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 0);
  EXPECT_TRUE(EventsOf(fleet_, "residual_lost").empty());
}

TEST_F(Joining, WhoComesFromTheFamilyAndHasLostItsResidualIsCounted) {
  ScriptedClient client = NewClient("a");
  CheckIn message = FromARelay("a", (*fleet_.store()->Run())->lineage);
  message.residual_lost = true;
  ASSERT_EQ(client.Say(message), absl::OkStatus());
  EXPECT_EQ(client.Count<Welcome>(), 1);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 1);
}

TEST_F(Joining, WhoComesBackToTheFamilySaysWhatItKeepsForThisCoordinator) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  CommitRound(a, b);
  const Id128 ours = (*fleet_.store()->Run())->lineage;
  ScriptedClient returning = NewClient("a");
  ASSERT_EQ(returning.Say(FromARelay("a", ours)), absl::OkStatus());
  EXPECT_EQ(returning.Count<Welcome>(), 0);
  ASSERT_EQ(returning.Count<Refusal>(), 1);
  EXPECT_TRUE(returning.All<Refusal>()[0].retry);
  EXPECT_EQ(returning.All<Refusal>()[0].lineage, ours);
  EXPECT_EQ(a.Count<Refusal>(), 0) << "it has not taken the name yet";
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 0);
  EXPECT_TRUE(EventsOf(fleet_, "residual_lost").empty());
  ScriptedClient again = NewClient("a");
  ASSERT_EQ(again.SayCheckIn(LastApplied(0)), absl::OkStatus());
  ASSERT_EQ(again.Count<Welcome>(), 1);
  EXPECT_FALSE(again.All<Welcome>()[0].verdict.has_value());
  // Who keeps nothing for this coordinator has another past than it has.
  ASSERT_EQ(again.Disconnect(), absl::OkStatus());
  ScriptedClient forgetful = NewClient("a");
  ASSERT_EQ(forgetful.SayCheckIn(), absl::OkStatus());
  EXPECT_EQ(FirstVerdict(forgetful).outcome, Outcome::kReset);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 1);
}

TEST_F(Joining, AResetTakesTheUpdateOfTheOtherPastOutOfTheRound) {
  ScriptedClient a = Joined("a"), b = Joined("b");
  CommitRound(a, b);
  const Update update = a.MakeUpdate(2, 0, 5, LastApplied(0));
  ASSERT_EQ(a.Say(update), absl::OkStatus());
  ASSERT_EQ(a.Disconnect(), absl::OkStatus());
  ScriptedClient fresh = NewClient("a");
  ASSERT_EQ(fresh.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(FirstVerdict(fresh).outcome, Outcome::kReset);
  ASSERT_EQ(b.Say(b.MakeUpdate(2, 1, 5, LastApplied(1))), absl::OkStatus());
  ASSERT_EQ(fleet_.PassDeadline(), absl::OkStatus());
  EXPECT_NE(LastApplied(0), update.update_id);
  EXPECT_EQ(fleet_.engine()->View().head.version, 2);
}

TEST_F(Joining, ALostResidualIsCounted) {
  ScriptedClient client = NewClient("a");
  CheckIn message;
  message.name = "a";
  message.residual_lost = true;
  ASSERT_EQ(client.Say(message), absl::OkStatus());
  EXPECT_EQ(client.Count<Welcome>(), 1);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 1);
}

}  // namespace
}  // namespace terse
