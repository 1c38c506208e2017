// Updates that come packed with what both ends keep of the client's applied ones (codec.positions = "shared").
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"
#include "tests/testing/histories.h"
#include "tests/testing/scripted_client.h"

namespace terse {
namespace {

constexpr int64_t kSharedRounds = 96;

RunConfig SharedRunConfig(int64_t clients) {
  RunConfig config = GridRunConfig(clients, kSharedRounds);
  config.codec.density = 0.1;
  config.codec.positions = std::string(kSharedPositions);
  return config;
}

// Returns the bytes of the chosen updates without packing, from the rounds' downstream messages of mode forward.
int64_t CanonicalBytes(FleetSimulation& fleet) {
  int64_t bytes = 0;
  const std::vector<LogMessage> log = *fleet.store()->ReadLog(0, fleet.store()->GetHead()->version);
  for (const LogMessage& message : log) {
    const std::vector<absl::string_view> updates = *UpdatesOfForward(message.downstream);
    for (const absl::string_view update : updates) bytes += static_cast<int64_t>(update.size());
  }
  return bytes;
}

int64_t PayloadBytes(FleetSimulation& fleet) {
  int64_t bytes = 0;
  const std::vector<RoundRecord> rounds = *fleet.store()->Rounds(1, 1000);
  for (const RoundRecord& round : rounds) bytes += round.update_bytes;
  return bytes;
}

class Shared : public ::testing::Test {
 protected:
  explicit Shared(const RunConfig& config = SharedRunConfig(2)) : fleet_(config, config.rounds.clients) {
    EXPECT_EQ(fleet_.StartAll(), absl::OkStatus());
  }

  void RunTo(int64_t version) {
    while (fleet_.engine()->View().head.version < version) ASSERT_TRUE(*fleet_.DeliverAny(nullptr));
  }
  void RestartClient(int64_t i) {
    fleet_.KillClient(i);
    ASSERT_EQ(fleet_.StartClient(i), absl::OkStatus());
    fleet_.Connect(i);
  }
  void RestartCoordinator() {
    fleet_.KillCoordinator();
    ASSERT_EQ(fleet_.StartCoordinator(), absl::OkStatus());
    for (int64_t i = 0; i < fleet_.size(); ++i) fleet_.Connect(i);
  }
  int64_t LoggedBytes(int64_t client) {
    const HistoryRecord history = *fleet_.store()->ReadHistory(client);
    int64_t bytes = 0;
    for (const std::string& message : history.log) bytes += static_cast<int64_t>(message.size());
    return bytes;
  }

  void FinishAndCheck() {
    ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
    EXPECT_EQ(fleet_.engine()->View().head.version, kSharedRounds);
    EXPECT_EQ(CheckReplay(fleet_.store(), fleet_.config(), fleet_.downstream_codecs(), GridInitialWeights()),
              absl::OkStatus());
    for (int64_t i = 0; i < fleet_.size(); ++i) {
      EXPECT_EQ(CheckConservation(fleet_.store(), fleet_.codec(), i, *fleet_.state(i)->Read(), fleet_.baseline(i)),
                absl::OkStatus());
      EXPECT_EQ(CheckHistories(fleet_.store(), fleet_.codec(), i, *fleet_.state(i)), absl::OkStatus());
    }
    EXPECT_EQ(EventsOf(fleet_, "update_misread").size(), 0);
    EXPECT_EQ(EventsOf(fleet_, "update_rejected").size(), 0);
  }

  FleetSimulation fleet_;
};

TEST_F(Shared, UpdatesCostLessAndBothEndsKeepOneHistory) {
  int64_t compactions = 0;
  static_cast<FailingStore*>(fleet_.store())->fault = [&](absl::string_view call, bool after) {
    compactions += call == "CompactHistory" && after;
    return absl::OkStatus();
  };
  FinishAndCheck();
  EXPECT_LE(compactions * fleet_.histories()->state_bytes() / 4, CanonicalBytes(fleet_));
  EXPECT_LT(PayloadBytes(fleet_), CanonicalBytes(fleet_));
  const HistoryRecord history = *fleet_.store()->ReadHistory(0);
  EXPECT_EQ(history.count(), kSharedRounds);
  EXPECT_GT(history.messages, 0);
  EXPECT_LT(LoggedBytes(0), fleet_.histories()->state_bytes() / 2);
}

TEST_F(Shared, AClientThatStartsAgainGoesOnPacking) {
  RunTo(10);
  RestartClient(0);
  const int64_t before = CanonicalBytes(fleet_) - PayloadBytes(fleet_);
  FinishAndCheck();
  EXPECT_GT(CanonicalBytes(fleet_) - PayloadBytes(fleet_), before);
}

TEST_F(Shared, ACoordinatorThatStartsAgainGoesOnUnpacking) {
  RunTo(10);
  RestartCoordinator();
  FinishAndCheck();
}

// The coordinator holds in memory another history than the one that was compared: an error of its own.
TEST_F(Shared, AnotherHistoryCostsASecondAttemptAndNothingElse) {
  RunTo(10);
  const HistoryRecord others = *fleet_.store()->ReadHistory(1);
  fleet_.histories()->Hold(0, *fleet_.histories()->Build(others));
  while (EventsOf(fleet_, "update_misread").empty()) ASSERT_TRUE(*fleet_.DeliverAny(nullptr));
  EXPECT_FALSE(fleet_.histories()->Holds(0));
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  ASSERT_FALSE(fleet_.connected(0));
  fleet_.Connect(0);
  const int64_t packed = fleet_.updates_packed();
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet_.engine()->View().head.version, kSharedRounds);
  EXPECT_EQ(EventsOf(fleet_, "update_misread").size(), 1);
  EXPECT_EQ(EventsOf(fleet_, "update_rejected").size(), 0);
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 0);
  // Only the other one's from then on, and nothing is kept that would not go on.
  EXPECT_LE(fleet_.updates_packed() - packed, kSharedRounds - 10);
  EXPECT_FALSE(fleet_.histories()->Holds(0));
  EXPECT_EQ(fleet_.store()->ReadHistory(0)->count(), 0);
  EXPECT_EQ(CheckConservation(fleet_.store(), fleet_.codec(), 0, *fleet_.state(0)->Read(), {}), absl::OkStatus());
}

// Both begin anew, pack again, and hold one history from then on.
TEST_F(Shared, WhoseHistoryDiffersBeginsAnewOnBothSides) {
  const std::string unreadable = "of another release";
  for (const std::string& state : {fleet_.histories()->Build({})->Serialize(), unreadable}) {
    const int64_t version = fleet_.engine()->View().head.version;
    RunTo(version + 8);
    fleet_.KillClient(0);
    ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
    const int64_t count = fleet_.store()->ReadHistory(0)->count();
    ASSERT_EQ(fleet_.store()->CompactHistory(0, count, state), absl::OkStatus());
    ASSERT_EQ(fleet_.StartClient(0), absl::OkStatus());
    fleet_.Connect(0);
    const int64_t before = fleet_.updates_packed();
    RunTo(version + 12);
    EXPECT_TRUE(fleet_.histories()->Holds(0));
    EXPECT_LT(fleet_.store()->ReadHistory(0)->count(), count);
    EXPECT_GT(fleet_.updates_packed(), before + 4) << "client 0 does not pack any more";
  }
  EXPECT_EQ(EventsOf(fleet_, "history_differs").size(), 2);
  FinishAndCheck();
}

// Its directory was not there at one start, and then it is again: nothing went back in time.
TEST_F(Shared, AVisitWithAnEmptyDirectoryBeginsBothAnew) {
  RunTo(12);
  fleet_.KillClient(0);
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  ScriptedClient visitor(&fleet_, fleet_.client_name(0), 5000);
  ASSERT_EQ(visitor.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(fleet_.Handle(Disconnected{5000}), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->ReadHistory(0)->count(), 0);
  ASSERT_EQ(fleet_.StartClient(0), absl::OkStatus());
  fleet_.Connect(0);
  RunTo(16);
  EXPECT_TRUE(fleet_.histories()->Holds(0));
  EXPECT_EQ(EventsOf(fleet_, "history_differs").size(), 0) << "the coordinator had none";
  FinishAndCheck();
}

// An update that is applied between its client's check-in and Ready: what the client says it holds is of before.
TEST_F(Shared, AnUpdateThatIsAppliedDuringACheckInIsNoDifference) {
  RunTo(8);
  const int64_t version = fleet_.engine()->View().head.version;
  // Client 0 delivers, client 1 does not yet.
  const auto move = [&](int64_t i) { return *fleet_.DeliverDown(i) || *fleet_.DeliverUp(i); };
  while (move(0)) {
  }
  ASSERT_EQ(fleet_.engine()->View().head.version, version);
  const int64_t messages = fleet_.store()->ReadHistory(0)->count();
  fleet_.KillClient(0);
  while (*fleet_.DeliverFromBroken()) {
  }
  ASSERT_EQ(fleet_.StartClient(0), absl::OkStatus());
  fleet_.Connect(0);
  ASSERT_TRUE(*fleet_.DeliverUp(0));  // its check-in
  while (fleet_.engine()->View().head.version == version) ASSERT_TRUE(move(1));
  ASSERT_EQ(fleet_.store()->ReadHistory(0)->count(), messages + 1);
  EXPECT_FALSE(fleet_.histories()->Holds(0));
  while (!fleet_.histories()->Holds(0)) ASSERT_TRUE(move(0));
  EXPECT_EQ(fleet_.store()->ReadHistory(0)->count(), messages + 1);
  EXPECT_EQ(EventsOf(fleet_, "history_differs").size(), 0);
  FinishAndCheck();
}

TEST_F(Shared, TheLogStaysBoundedThroughRestarts) {
  for (int64_t version = 4; version < kSharedRounds; version += 4) {
    RunTo(version);
    RestartCoordinator();
  }
  FinishAndCheck();
  EXPECT_LT(LoggedBytes(0), fleet_.histories()->state_bytes() / 2);
}

class SharedAlone : public Shared {
 protected:
  SharedAlone() : Shared(SharedRunConfig(1)) {}
};

// The connection breaks with the packed update on its way, before or after the coordinator has it.
TEST_F(SharedAlone, WhatIsSentAgainIsNotPacked) {
  RunTo(10);
  for (const bool arrives : {false, true}) {
    const int64_t version = fleet_.engine()->View().head.version;
    fleet_.link(0)->CutAtSend(1, arrives);
    while (fleet_.connected(0)) ASSERT_TRUE(*fleet_.DeliverAny(nullptr));
    const int64_t packed = fleet_.updates_packed();
    ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
    EXPECT_EQ(fleet_.updates_packed(), packed + (arrives ? 1 : 0)) << arrives;
    fleet_.Connect(0);
    RunTo(version + 3);
  }
  FinishAndCheck();
}

TEST_F(Shared, AResetBeginsBothHistoriesAnew) {
  RunTo(6);
  fleet_.KillClient(0);
  fleet_.Snapshot(0);
  ASSERT_EQ(fleet_.StartClient(0), absl::OkStatus());
  fleet_.Connect(0);
  RunTo(12);
  fleet_.KillClient(0);
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());  // its connection is gone
  ASSERT_TRUE(fleet_.Rollback(0));
  ASSERT_EQ(fleet_.StartClient(0), absl::OkStatus());
  fleet_.Connect(0);
  ASSERT_EQ(fleet_.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet_.store()->GetClient(0)->resets, 1);
  EXPECT_LT(fleet_.store()->ReadHistory(0)->count(), kSharedRounds - 11);
  EXPECT_EQ(fleet_.store()->ReadHistory(1)->count(), kSharedRounds);
  FinishAndCheck();
}

class SharedBuffered : public Shared {
 protected:
  SharedBuffered() : Shared(Buffered()) {}
  static RunConfig Buffered() {
    RunConfig config = SharedRunConfig(2);
    config.rounds.buffered = true;
    config.rounds.cohort = config.rounds.quorum = 1;
    config.rounds.staleness = 4;
    return config;
  }
};

TEST_F(SharedBuffered, HistoriesMoveWithTheUpdatesThatCount) {
  RunTo(8);
  RestartClient(1);
  RunTo(16);
  RestartCoordinator();
  FinishAndCheck();
  EXPECT_GT(fleet_.updates_packed(), 0);
  EXPECT_EQ(fleet_.store()->ReadHistory(0)->count() + fleet_.store()->ReadHistory(1)->count(), kSharedRounds);
}

// One of two has room at a time; who has none sends its updates as they are, and nothing is stored for it.
TEST(SharedRoom, WhoFindsNoneSendsItsUpdatesAsTheyAre) {
  FleetSimulation fleet(SharedRunConfig(2), 2);
  fleet.set_history_room(1);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  for (int64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fleet.StartClient(i), absl::OkStatus());
    fleet.Connect(i);
  }
  while (fleet.engine()->View().head.version < 8) ASSERT_TRUE(*fleet.DeliverAny(nullptr));
  const int64_t held = fleet.histories()->Holds(0) ? 0 : 1;
  EXPECT_FALSE(fleet.histories()->Holds(1 - held));
  EXPECT_GT(fleet.store()->ReadHistory(held)->count(), 0);
  EXPECT_EQ(fleet.store()->ReadHistory(1 - held)->count(), 0);
  EXPECT_EQ(EventsOf(fleet, "histories_full").size(), 1);
  // Room becomes free, and the other one takes it when it comes again.
  for (int64_t i : {held, 1 - held}) fleet.KillClient(i);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  ASSERT_EQ(fleet.StartClient(1 - held), absl::OkStatus());
  fleet.Connect(1 - held);
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_TRUE(fleet.histories()->Holds(1 - held));
  EXPECT_EQ(EventsOf(fleet, "history_differs").size(), 0);
  EXPECT_EQ(EventsOf(fleet, "update_misread").size(), 0);
}

// Bytes that can be unpacked, into something else than what was sealed: nobody's failure, and not the client's update.
TEST(SharedScripted, AnUpdateThatIsReadAsAnotherOneIsAskedForAgain) {
  FleetSimulation fleet(SharedRunConfig(1), 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ScriptedClient client(&fleet, "a", 1001);
  ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(client.SayReady(), absl::OkStatus());
  EXPECT_TRUE(client.All<Assignment>().at(0).packed);
  const UpdateHistory none(*fleet.codec().PackedLayout());
  Update update = client.MakeUpdate(1, 0, 0);
  update.message = *fleet.codec().Pack(client.MakeUpdate(1, 0, 1).message, none);
  update.packed = true;
  ASSERT_EQ(client.Say(update), absl::OkStatus());
  ASSERT_EQ(client.Count<Refusal>(), 1);
  EXPECT_TRUE(client.All<Refusal>()[0].retry);
  EXPECT_EQ(EventsOf(fleet, "update_misread").size(), 1);
  EXPECT_EQ(fleet.store()->GetClient(0)->failures, 0);
  EXPECT_FALSE(fleet.histories()->Holds(0));
}

TEST(SharedScripted, AHistoryIsReadOnceForAConnectionAndNotForWhoIsDistrusted) {
  FleetSimulation fleet(SharedRunConfig(1), 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  int reads = 0;
  static_cast<FailingStore*>(fleet.store())->fault = [&](absl::string_view call, bool after) {
    reads += call == "ReadHistory" && !after;
    return absl::OkStatus();
  };
  ScriptedClient client(&fleet, "a", 1001);
  ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(client.SayReady(), absl::OkStatus());
  EXPECT_EQ(reads, 1);
  Update update = client.MakeUpdate(1, 0, 0);
  update.message = "nonsense";
  update.packed = true;
  ASSERT_EQ(client.Say(update), absl::OkStatus());
  ASSERT_EQ(fleet.Handle(Disconnected{1001}), absl::OkStatus());
  ScriptedClient again(&fleet, "a", 1002);
  ASSERT_EQ(again.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(again.SayReady(), absl::OkStatus());
  EXPECT_EQ(reads, 1);
}

// Nobody asked for packed updates here, so this is no difference of histories.
TEST(SharedScripted, PackedUpdatesWithoutLeaveAreAFailure) {
  FleetSimulation fleet(SharedRunConfig(1), 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  for (SessionId session = 1001; session < 1004; ++session) {
    ScriptedClient client(&fleet, "a", session);
    ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
    ASSERT_EQ(client.SayReady(), absl::OkStatus());
    Update update = client.MakeUpdate(1, 0, 0);
    update.message = "nonsense";
    update.packed = true;
    ASSERT_EQ(client.Say(update), absl::OkStatus());
    ASSERT_EQ(fleet.Handle(Disconnected{session}), absl::OkStatus());
  }
  EXPECT_EQ(EventsOf(fleet, "update_misread").size(), 1);
  EXPECT_EQ(EventsOf(fleet, "update_rejected").size(), 2);
  EXPECT_EQ(fleet.store()->GetClient(0)->failures, 2);
}

// An engine without histories cannot read a packed update: a run whose updates are not packed has no use for them.
TEST(SharedOff, APackedUpdateIsRefusedForGood) {
  FleetSimulation fleet(GridRunConfig(1, 5), 0);
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  ScriptedClient client(&fleet, "a", 1001);
  ASSERT_EQ(client.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(client.SayReady(), absl::OkStatus());
  EXPECT_FALSE(client.All<Assignment>().at(0).packed);
  Update update = client.MakeUpdate(1, 0, 0);
  update.packed = true;
  const absl::Status refused = client.Say(update);
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("codec.positions"));
}

}  // namespace
}  // namespace terse
