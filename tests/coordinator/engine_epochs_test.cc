// Runs with epochs: the whole fleet's gradient, then one client's step at a time; what clients are sent, what is too
// old, and what a restart continues.
#include <algorithm>
#include <string>
#include <vector>

#include "compression/choice_codec.h"
#include "compression/downstream.h"
#include "core/codec_choices.h"
#include "core/epochs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunConfig EpochsRun(int64_t clients, int64_t epoch_length, int64_t rounds, const std::string& optimizer = "svrg") {
  RunConfig config = GridRunConfig(clients, rounds);
  config.rounds.buffered = true;
  config.rounds.cohort = config.rounds.quorum = 1;
  config.rounds.staleness = 5;
  config.train.local_steps = 1;
  config.codec = {"low_precision"};
  config.codec.bits = 8;
  config.codec.feedback = "discard";
  config.downstream = DownstreamMode::kCoded;
  config.downstream_codec.name = "low_precision";
  config.downstream_codec.bits = 10;
  config.server.name = optimizer;
  config.server.learning_rate = 0.125;
  config.server.epoch_length = epoch_length;
  config.server.precision_loss = 0.125;
  config.checkpoint_every = 1;
  return config;
}

std::vector<int64_t> VersionsSent(const ScriptedClient& client) {
  std::vector<int64_t> versions;
  for (const Downstream& delta : client.All<Downstream>()) versions.push_back(delta.version);
  return versions;
}

std::vector<Outcome> OutcomesOf(const ScriptedClient& client) {
  std::vector<Outcome> outcomes;
  for (const Verdict& verdict : client.All<Verdict>()) outcomes.push_back(verdict.outcome);
  return outcomes;
}

// Clients take turns to deliver what they were last asked for, until the head is there.
void DeliverUntil(Crew& crew, int64_t clients, int64_t version) {
  for (int64_t turn = 0; turn < 200 && crew.view().head.version < version; ++turn) {
    const std::vector<Assignment> assignments = crew.at(turn % clients).All<Assignment>();
    crew.Deliver(turn % clients, assignments.back().round);
  }
  ASSERT_EQ(crew.view().head.version, version);
}

TEST(EngineEpochs, TheFleetsGradientComesFirst) {
  Crew crew(EpochsRun(3, 2, 100), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const Assignment first = crew.at(i).All<Assignment>().back();
    EXPECT_EQ(first.base_version, 0);
    EXPECT_EQ(first.choice, kFullGradientChoice);
  }
  crew.Deliver(0, 1);
  crew.Deliver(1, 1);
  EXPECT_EQ(crew.view().head.version, 0);
  EXPECT_EQ(crew.at(0).Count<Assignment>(), 1) << "no work before all are in";
  crew.Deliver(2, 1);
  ASSERT_EQ(crew.view().head.version, 1);
  EXPECT_EQ(crew.fleet.engine()->weights(), GridInitialWeights());
  EXPECT_EQ(crew.Working(2), (std::set<int64_t>{0, 1, 2}));
  EXPECT_EQ(crew.at(1).All<Assignment>().back().choice, kGradientStepChoice);
  crew.Deliver(1, 2);
  ASSERT_EQ(crew.view().head.version, 2);
  EXPECT_NE(crew.fleet.engine()->weights(), GridInitialWeights());
  EXPECT_EQ(crew.Working(3), (std::set<int64_t>{1}));
}

TEST(EngineEpochs, TheGradientIsWeightedByExamples) {
  Crew crew(EpochsRun(2, 2, 100), 0);
  crew.Join(0, 30);
  crew.Join(1, 10);
  crew.Deliver(0, 1);
  crew.Deliver(1, 1);
  crew.Deliver(0, 2);
  ASSERT_EQ(crew.view().head.version, 2);
  EXPECT_THAT(ParseForwarded(*crew.fleet.store()->ReadAggregate(1))->samples, ElementsAre(30, 10));
  EXPECT_THAT(ParseForwarded(*crew.fleet.store()->ReadAggregate(2))->samples, IsEmpty());
}

TEST(EngineEpochs, AClientWithoutExamplesIsRefused) {
  Crew crew(EpochsRun(2, 2, 100), 0);
  crew.Join(0, 0);
  EXPECT_EQ(crew.at(0).Count<Refusal>(), 1);
}

TEST(EngineEpochs, WhoWasBusyGetsTheNewestModelAlone) {
  Crew crew(EpochsRun(2, 8, 100), 2);
  crew.DeliverAll();
  for (int64_t round = 2; round <= 5; ++round) crew.Deliver(0, round);
  ASSERT_EQ(crew.view().head.version, 5);
  EXPECT_THAT(VersionsSent(crew.at(1)), ElementsAre(1));
  const Update late = crew.MakeUpdate(1, 2);
  ASSERT_EQ(crew.at(1).Say(late), absl::OkStatus());
  ASSERT_EQ(crew.view().head.version, 6);
  EXPECT_THAT(VersionsSent(crew.at(1)), ElementsAre(1, 6));
  EXPECT_THAT(VersionsSent(crew.at(0)), ElementsAre(1, 2, 3, 4, 5));
  // It counts in full, however late.
  EXPECT_THAT(ParseForwarded(*crew.fleet.store()->ReadAggregate(6))->samples, IsEmpty());
}

TEST(EngineEpochs, AStepOfTheEpochBeforeIsNotApplied) {
  Crew crew(EpochsRun(3, 2, 100), 3);
  crew.DeliverAll();
  crew.Deliver(0, 2);
  crew.Deliver(0, 3);
  ASSERT_EQ(crew.view().head.version, 3);
  EXPECT_THAT(VersionsSent(crew.at(0)), ElementsAre(1, 2, 3));
  EXPECT_EQ(crew.at(0).All<Downstream>().back().message->at(0), static_cast<char>(0x86)) << "the snapshot, whole";
  EXPECT_EQ(crew.Working(4), (std::set<int64_t>{0}));
  crew.Deliver(1, 2);
  EXPECT_THAT(OutcomesOf(crew.at(1)), ElementsAre(Outcome::kApplied, Outcome::kNotApplied));
  EXPECT_EQ(crew.view().head.version, 3);
  EXPECT_EQ(crew.Working(4), (std::set<int64_t>{0, 1}));
  EXPECT_EQ(crew.at(1).All<Assignment>().back().choice, kFullGradientChoice);
  EXPECT_THAT(VersionsSent(crew.at(1)), ElementsAre(1, 3));
}

TEST(EngineEpochs, AGradientThatIsTooLateIsNotApplied) {
  Crew crew(EpochsRun(3, 4, 100), 3);
  crew.Deliver(0, 1);
  crew.Deliver(1, 1);
  crew.Pass(crew.fleet.config().rounds.deadline_seconds + 1);
  ASSERT_EQ(crew.view().head.version, 1) << "a quorum is enough at the deadline";
  crew.Deliver(2, 1);
  EXPECT_THAT(OutcomesOf(crew.at(2)), ElementsAre(Outcome::kNotApplied));
  EXPECT_EQ(crew.Working(2), (std::set<int64_t>{0, 1, 2}));
}

TEST(EngineEpochs, AnAbortedGradientIsGatheredAgain) {
  Crew crew(EpochsRun(2, 4, 100), 2);
  crew.Deliver(0, 1);
  ASSERT_EQ(crew.fleet.Handle(AbortRequested{"by command"}), absl::OkStatus());
  ASSERT_EQ(crew.view().round, 2);
  EXPECT_EQ(crew.view().head.version, 0);
  crew.Deliver(1, 1);
  EXPECT_EQ(crew.view().head.version, 1) << "what was delivered for the aborted round is of the same use";
}

TEST(EngineEpochs, OnlySnapshotsHaveCheckpoints) {
  Crew crew(EpochsRun(2, 3, 10), 2);
  for (int64_t head = 1; head <= 9; ++head) {
    DeliverUntil(crew, 2, head);
    EXPECT_EQ(crew.fleet.store()->NewestCheckpointFile()->version, head - head % 4);
  }
  ASSERT_EQ(crew.fleet.Handle(StopRequested{}), absl::OkStatus());
  EXPECT_TRUE(crew.view().ended);
  EXPECT_EQ(crew.fleet.store()->NewestCheckpointFile()->version, 8);
  crew.Restart();
  EXPECT_EQ(crew.view().head.version, 9);
}

TEST(EngineEpochs, ANewcomerGetsTheSnapshotAndTheNewestModel) {
  for (const bool pruned : {false, true}) {
    RunConfig config = EpochsRun(2, 4, 100);
    config.checkpoint_every = pruned ? 1 : 1000;
    config.checkpoint_keep = 1;
    Crew crew(config, 2);
    crew.fleet.hold_background(pruned);  // so that more than a checkpoint's bytes lie behind the snapshot
    DeliverUntil(crew, 2, 7);
    crew.fleet.hold_background(false);
    crew.Pass(0);
    if (pruned) crew.Restart();  // a new process has no recent messages in memory
    ScriptedClient again(&crew.fleet, "c1", 2001);
    ASSERT_EQ(again.SayCheckIn(crew.LastApplied(1)), absl::OkStatus());
    ASSERT_EQ(again.Say(Ready{absl::nullopt, {}, GridLayout().Hash(), 1}), absl::OkStatus());
    if (pruned) {
      ASSERT_EQ(again.Count<Resync>(), 1);
      EXPECT_EQ(again.All<Resync>()[0].checkpoint_version, 5);
      EXPECT_EQ(again.Count<Downstream>(), 0);
      const Id128 hash = crew.fleet.store()->NewestCheckpointFile()->model_hash;
      ASSERT_EQ(again.Say(Ready{5, hash, GridLayout().Hash(), 1}), absl::OkStatus());
      EXPECT_THAT(VersionsSent(again), ElementsAre(7));
    } else {
      EXPECT_EQ(again.Count<Resync>(), 0);
      EXPECT_THAT(VersionsSent(again), ElementsAre(5, 7));
    }
    EXPECT_EQ(again.All<Assignment>().back().base_version, 7);
  }
}

// Ready and a snapshot may cross on the way: the client takes up the work that came with the snapshot, and lets pass
// what it is given in answer to Ready.
TEST(EngineEpochs, WhoDeliversIsFreeWhateverItWasGivenLast) {
  Crew crew(EpochsRun(2, 4, 100), 2);
  DeliverUntil(crew, 2, 6);
  const int64_t begun = crew.at(1).All<Assignment>().back().round;
  ASSERT_EQ(crew.at(1).All<Assignment>().back().base_version, 6);
  crew.Deliver(0, crew.view().round);
  ASSERT_EQ(crew.view().head.version, 7);
  ASSERT_EQ(crew.at(1).Say(Ready{absl::nullopt, {}, GridLayout().Hash(), 1}), absl::OkStatus());
  ASSERT_EQ(crew.at(1).All<Assignment>().back().base_version, 7);
  crew.Deliver(1, begun);
  ASSERT_EQ(crew.view().head.version, 8);
  EXPECT_EQ(crew.at(1).All<Assignment>().back().base_version, 8);
}

// A snapshot of another past, as of a state directory that was copied back, would never show in the models after it.
TEST(EngineEpochs, WhoHoldsAnotherSnapshotLoadsThisOne) {
  for (const int64_t version : {5, 6}) {
    Crew crew(EpochsRun(2, 4, 100), 2);
    DeliverUntil(crew, 2, 7);
    ScriptedClient again(&crew.fleet, "c1", 2001);
    ASSERT_EQ(again.SayCheckIn(crew.LastApplied(1)), absl::OkStatus());
    ASSERT_EQ(again.Say(Ready{version, HashBytes("another past"), GridLayout().Hash(), 1}), absl::OkStatus());
    EXPECT_EQ(again.Count<Downstream>(), 0);
    ASSERT_EQ(again.Count<Resync>(), 1) << version;
    EXPECT_EQ(EventsOf(crew.fleet, "model_drift").size(), 1);
  }
}

TEST(EngineEpochs, GradientsThatAreDroppedAreCountedInTheLedger) {
  Crew crew(EpochsRun(3, 2, 100), 3);
  crew.DeliverAll();
  crew.Deliver(0, 2);
  crew.Deliver(0, 3);
  ASSERT_EQ(crew.view().head.version, 3);
  const Update dropped = crew.MakeUpdate(1, 2);
  ASSERT_EQ(crew.at(1).Say(dropped), absl::OkStatus());
  EXPECT_THAT(OutcomesOf(crew.at(1)), ElementsAre(Outcome::kApplied, Outcome::kNotApplied));
  crew.Deliver(2, 2);
  const int64_t full = static_cast<int64_t>(crew.MakeUpdate(1, 4).message.size());
  crew.DeliverAll();
  ASSERT_EQ(crew.view().head.version, 4);
  int64_t payload = 0;
  const std::vector<LedgerEntry> ledger = *crew.fleet.store()->Ledger(4, 4);
  for (const LedgerEntry& entry : ledger) {
    if (entry.client == 1 && entry.direction == Direction::kUp) payload += entry.payload_bytes;
  }
  EXPECT_EQ(payload, full + static_cast<int64_t>(dropped.message.size()));
}

// Every update in the model is one that its client sealed, and later than the one before: nothing counts twice.
void ExpectSealedOnce(FleetSimulation& fleet, int64_t client) {
  const int64_t rounds = (*fleet.store()->LastRound())->id;
  const auto sealed_as = [&](int64_t step, absl::string_view message) {
    EncodeOptions options;
    options.choice = ChoiceOf(message);
    for (int64_t round = 1; round <= rounds; ++round) {
      options.key = {fleet.config().seed, static_cast<uint64_t>(round), static_cast<uint64_t>(client)};
      if (*fleet.codec().Encode(GridDelta(client, step), options) == message) return true;
    }
    return false;
  };
  const StoredState state = *fleet.state(client)->Read();
  EXPECT_EQ(*FirstNotSealed(fleet.store(), client, state, fleet.baseline(client), sealed_as), -1) << client;
}

class EngineEpochsDeaths : public ::testing::TestWithParam<const char*> {};

TEST_P(EngineEpochsDeaths, NothingCountsTwiceAndEverythingIsRepeated) {
  FleetSimulation fleet(EpochsRun(3, 4, 25, GetParam()), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  Random random(5);
  for (int64_t kill = 0; kill < 14; ++kill) {
    for (int64_t step = 0; step < 11 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(&random).status(), absl::OkStatus());
    if (kill % 3 != 2) {
      fleet.KillClient(kill % 3);
    } else {
      ASSERT_EQ(fleet.StopClient(kill % 3), absl::OkStatus());
    }
    ASSERT_EQ(fleet.StartClient(kill % 3), absl::OkStatus());
    if (kill % 2 == 0) {
      fleet.KillCoordinator();
      ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus()) << kill;
    }
    for (int64_t i = 0; i < 3; ++i) {
      if (!fleet.connected(i)) fleet.Connect(i);
    }
  }
  ASSERT_EQ(fleet.Settle(&random), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 25);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  EXPECT_EQ(CheckServerSteps(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < 3; ++i) ExpectSealedOnce(fleet, i);
  EXPECT_THAT(EventsOf(fleet, "model_drift"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Optimizers, EngineEpochsDeaths, ::testing::Values("svrg", "acc_svrg"));

}  // namespace
}  // namespace terse
