// A relay's engine: rounds that are ordered from above, results that are handed up, and models that come down; and a
// coordinator that has relays among its clients.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compression/aggregate.h"
#include "compression/downstream.h"
#include "coordinator/upstream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The coordinator above, of which the test says what it does.
class ScriptedUpstream : public Upstream {
 public:
  absl::StatusOr<int64_t> SealedRound(Id128 lineage) override {
    asked.push_back(lineage);
    return sealed;
  }
  void HandUp(CohortResult result) override { results.push_back(std::move(result)); }
  void Decline(const std::string& reason) override { declined.push_back(reason); }

  absl::StatusOr<int64_t> sealed = 0;
  std::vector<Id128> asked;
  std::vector<CohortResult> results;
  std::vector<std::string> declined;
};

Id128 Family() { return HashBytes("lineage of the root"); }
Id128 RootStart() { return HashBytes("start of the root"); }

RelaySetup Setup(Upstream* upstream, int64_t clients) {
  RelaySetup setup;
  setup.upstream = upstream;
  setup.family = Family();
  setup.start_hash = RootStart();
  setup.shards = {4, 2};
  setup.rounds.clients = clients;
  return setup;
}

// The configuration of the run above, whose fleet is five relays or clients.
RunConfig RootRun() { return GridRunConfig(5, 1000); }

// A relay of a run that is at version 57, and its clients.
class RelayCrew : public Crew {
 public:
  RelayCrew(ScriptedUpstream* upstream, int64_t clients, const RunConfig& root = RootRun())
      : Crew(RelayConfig(root, Setup(upstream, clients).rounds), clients, Setup(upstream, clients), 57),
        weights(GridInitialWeights()) {}

  RoundOrder OrderFrom(int64_t version) const {
    RoundOrder order;
    order.plan.local_steps = 7;
    order.plan.choice = 3;
    order.plan.first_iteration = 399;
    order.base_version = version;
    return order;
  }
  void Order() { EXPECT_EQ(fleet.Handle(RoundOrdered{OrderFrom(view().head.version)}), absl::OkStatus()); }
  void Withdraw() { EXPECT_EQ(fleet.Handle(OrderWithdrawn{"nobody waits"}), absl::OkStatus()); }
  void Seal(int64_t round) { EXPECT_EQ(fleet.Handle(HandedUp{round, absl::OkStatus()}), absl::OkStatus()); }
  // Round `round` is ordered, and all of its clients deliver.
  void Fill(int64_t round) {
    Order();
    ASSERT_EQ(view().round, round);
    DeliverAll();
    ASSERT_EQ(RoundStateOf(round), RoundState::kClosed);
  }
  // A message that leads from the model `weights` to the next one, which becomes `weights`.
  Downstream NextModel() {
    const std::vector<float> step = GridDelta(77, version_);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += step[i];
    return {++version_, HashWeights(weights), std::make_shared<const std::string>(BuildDenseDownstream(step))};
  }
  void Move(Downstream message) { EXPECT_EQ(fleet.Handle(ModelMoved{std::move(message)}), absl::OkStatus()); }

  std::vector<Outcome> OutcomesOf(int64_t i) {
    std::vector<Outcome> outcomes;
    for (const Verdict& verdict : at(i).All<Verdict>()) outcomes.push_back(verdict.outcome);
    return outcomes;
  }

  std::vector<float> weights;  // of the newest model from above

 private:
  int64_t version_ = 57;
};

class EngineRelay : public ::testing::Test {
 protected:
  // The mean of the clients' first updates, by weights.
  std::vector<float> MeanOf(const std::vector<std::string>& messages, const std::vector<int64_t>& samples) {
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    std::vector<float> mean(GridLayout().size());
    EXPECT_EQ(AverageUpdates(crew_.fleet.codec(), views, AveragingWeights(samples), 1, absl::MakeSpan(mean)),
              absl::OkStatus());
    return mean;
  }

  ScriptedUpstream upstream_;
  RelayCrew crew_{&upstream_, 2};
};

TEST_F(EngineRelay, NoRoundOpensBeforeAnOrder) {
  EXPECT_EQ(crew_.view().phase, "waiting for clients");
  EXPECT_EQ(crew_.view().head.version, 57);
  EXPECT_EQ(crew_.view().round, 0);
  EXPECT_EQ(crew_.fleet.engine()->NextDeadlineMicros(), kNever) << "a timer without an order would fire for ever";
  crew_.Pass(100'000);
  EXPECT_EQ(crew_.fleet.engine()->NextDeadlineMicros(), kNever);
  EXPECT_THAT(crew_.Working(1), IsEmpty());
  EXPECT_EQ(crew_.view().round, 0);
  EXPECT_THAT(upstream_.asked, IsEmpty()) << "there is no round that was left";
}

TEST_F(EngineRelay, AnOrderOpensARoundWithItsPlan) {
  crew_.Order();
  EXPECT_THAT(crew_.Working(1), ElementsAre(0, 1));
  for (const int64_t i : {0, 1}) {
    const Assignment assignment = crew_.at(i).All<Assignment>().at(0);
    EXPECT_EQ(assignment.round, 1) << "the rounds are the relay's own";
    EXPECT_EQ(assignment.base_version, 57);
    EXPECT_EQ(assignment.local_steps, 7);
    EXPECT_EQ(assignment.choice, 3);
    EXPECT_EQ(assignment.first_iteration, 399);
  }
  const RoundRecord round = **crew_.fleet.store()->LastRound();
  EXPECT_EQ(round.base_version, 57);
  EXPECT_EQ(round.plan->local_steps, 7);
  EXPECT_EQ(round.plan->choice, 3);
  EXPECT_EQ(round.plan->first_iteration, 399);
}

TEST_F(EngineRelay, AnOrderThatIsSaidAgainChangesNothing) {
  crew_.Order();
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 1);
  crew_.DeliverAll();
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 1);
  EXPECT_EQ(upstream_.results.size(), 1u);
  crew_.Seal(1);
  EXPECT_THAT(crew_.Working(2), IsEmpty()) << "the order was carried out";
}

TEST_F(EngineRelay, AnOrderFromAnotherVersionIsDeclined) {
  for (const int64_t version : {56, 58}) {
    ASSERT_EQ(crew_.fleet.Handle(RoundOrdered{crew_.OrderFrom(version)}), absl::OkStatus());
    ASSERT_FALSE(upstream_.declined.empty());
    EXPECT_THAT(upstream_.declined.back(),
                HasSubstr(absl::StrCat("from version ", version, ", and the relay's model is at 57")));
  }
  EXPECT_EQ(upstream_.declined.size(), 2u);
  EXPECT_EQ(crew_.view().round, 0);
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 1);
  EXPECT_EQ(upstream_.declined.size(), 2u);
}

// A relay that idled for long has not waited for its clients meanwhile.
TEST_F(EngineRelay, AnOrderWaitsForTheClientsFromWhenItCame) {
  crew_.Leave(1);
  crew_.Pass(100'000);
  crew_.Join(1);
  crew_.at(1).Forget();
  ASSERT_EQ(crew_.at(1).Say(Ready{absl::nullopt, {}, GridLayout().Hash(), 1}), absl::OkStatus()) << "it is on its way";
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 0);
  EXPECT_NEAR(crew_.SecondsToDeadline(), 8, 0.1) << "four fifths of the run's";
  ASSERT_EQ(crew_.at(1).SayReady(), absl::OkStatus());
  EXPECT_THAT(crew_.Working(1), ElementsAre(0, 1));
}

TEST_F(EngineRelay, AQuorumIsEnoughForWhoWaitedLong) {
  ASSERT_EQ(crew_.at(1).Say(Ready{absl::nullopt, {}, GridLayout().Hash(), 1}), absl::OkStatus());
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 0);
  crew_.Pass(5);
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 0);
  crew_.Pass(4);  // since it was said first
  EXPECT_THAT(crew_.Working(1), ElementsAre(0));
  crew_.Deliver(0, 1);
  EXPECT_THAT(upstream_.results, IsEmpty());
  crew_.Pass(9);
  ASSERT_EQ(upstream_.results.size(), 1u);
  EXPECT_EQ(upstream_.results[0].cohort.clients, 1);
}

TEST_F(EngineRelay, TheMeanIsHandedUpAndTheClientsHearOfItOnceItIsSealed) {
  crew_.Join(0, /*samples=*/30);
  crew_.Join(1, /*samples=*/10);
  crew_.Order();
  std::vector<Update> updates = {crew_.MakeUpdate(0, 1), crew_.MakeUpdate(1, 1)};
  updates[0].loss = 0.25f;
  updates[0].metrics = {{MetricKind::kTraining, "margin", 1, 30}};
  updates[1].loss = 0.75f;
  updates[1].metrics = {{MetricKind::kTraining, "margin", 5, 10}};
  for (const int64_t i : {0, 1}) {
    crew_.at(i).Forget();
    ASSERT_EQ(crew_.at(i).Say(updates[i]), absl::OkStatus());
  }
  ASSERT_EQ(upstream_.results.size(), 1u);
  const CohortResult& result = upstream_.results[0];
  EXPECT_EQ(result.round, 1);
  EXPECT_EQ(result.delta, MeanOf({updates[0].message, updates[1].message}, {}));
  EXPECT_EQ(result.loss, 0.5);
  EXPECT_EQ(result.cohort.clients, 2);
  EXPECT_EQ(result.cohort.samples, 40);
  ASSERT_EQ(result.metrics.size(), 1u);
  EXPECT_EQ(result.metrics[0].name, "margin");
  EXPECT_EQ(result.metrics[0].value, 2);
  EXPECT_EQ(result.metrics[0].samples, 40);

  // Until it is sealed, nobody knows whether it counts.
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kClosed);
  for (const int64_t i : {0, 1}) {
    EXPECT_THAT(crew_.OutcomesOf(i), IsEmpty());
    EXPECT_TRUE(crew_.LastApplied(i).IsZero());
  }
  crew_.Pass(1000);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kClosed);
  EXPECT_THAT(crew_.OutcomesOf(0), IsEmpty());

  crew_.Seal(1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  for (const int64_t i : {0, 1}) {
    const std::vector<Verdict> verdicts = crew_.at(i).All<Verdict>();
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].outcome, Outcome::kApplied);
    EXPECT_EQ(verdicts[0].update_id, updates[i].update_id);
    EXPECT_EQ(crew_.LastApplied(i), updates[i].update_id);
    EXPECT_EQ(crew_.Record(i).updates_applied, 1);
  }
  EXPECT_EQ(crew_.view().head.version, 57) << "the model comes from above";
  EXPECT_EQ(crew_.view().phase, "waiting for clients");
  crew_.Pass(1000);
  EXPECT_THAT(crew_.Working(2), IsEmpty()) << "the next round is ordered as well";
  EXPECT_GT((*crew_.fleet.store()->LastRound())->payload_bytes_up, 0);
}

TEST_F(EngineRelay, RoundsFollowEachOther) {
  for (int64_t round = 1; round <= 3; ++round) {
    crew_.Fill(round);
    crew_.Seal(round);
    if (round == 2) crew_.Move(crew_.NextModel());
  }
  EXPECT_EQ(crew_.Record(0).updates_applied, 3);
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->base_version, 58);
}

TEST_F(EngineRelay, TheMeanIsWeightedAsTheRunSays) {
  RunConfig root = RootRun();
  root.rounds.weighting = Weighting::kSamples;
  ScriptedUpstream upstream;
  RelayCrew crew(&upstream, 2, root);
  crew.Join(0, 30);
  crew.Join(1, 10);
  crew.Order();
  const std::vector<std::string> messages = {crew.MakeUpdate(0, 1).message, crew.MakeUpdate(1, 1).message};
  crew.DeliverAll();
  EXPECT_EQ(upstream.results.at(0).delta, MeanOf(messages, {30, 10}));
  EXPECT_EQ(upstream.results.at(0).cohort.samples, 40);
}

// A relay below counts for its clients.
TEST_F(EngineRelay, RelaysMayBeBelowRelays) {
  crew_.Leave(0);
  ScriptedClient relay(&crew_.fleet, "c0", 5001);
  relay.relay = true;
  ASSERT_EQ(relay.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(relay.SayReady(/*samples=*/90), absl::OkStatus());
  crew_.Order();
  Update update = relay.MakeUpdate(1, 0, 1);
  update.cohort = {3, 60};
  update.loss = 1;
  const std::vector<std::string> messages = {update.message, crew_.MakeUpdate(1, 1).message};
  ASSERT_EQ(relay.Say(update), absl::OkStatus());
  crew_.Deliver(1, 1);
  ASSERT_EQ(upstream_.results.size(), 1u);
  EXPECT_EQ(upstream_.results[0].delta, MeanOf(messages, {3, 1}));
  EXPECT_EQ(upstream_.results[0].cohort.clients, 4);
  EXPECT_EQ(upstream_.results[0].cohort.samples, 61);
  EXPECT_EQ(upstream_.results[0].loss, (3 * 1 + 0.5) / 4);
}

TEST_F(EngineRelay, AResultThatIsNotSealedIsNotApplied) {
  crew_.Fill(1);
  ASSERT_EQ(crew_.fleet.Handle(HandedUp{1, absl::AbortedError("it could not be sealed")}), absl::OkStatus());
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  for (const int64_t i : {0, 1}) {
    EXPECT_THAT(crew_.OutcomesOf(i), ElementsAre(Outcome::kNotApplied));
    EXPECT_THAT(crew_.at(i).All<Verdict>()[0].reason, HasSubstr("it could not be sealed"));
    EXPECT_TRUE(crew_.LastApplied(i).IsZero());
    EXPECT_EQ(crew_.Record(i).updates_not_applied, 1);
  }
  crew_.Pass(1000);
  EXPECT_EQ(crew_.view().round, 1) << "the order is no more";
  // What was not applied folds into the next round, if one is ordered.
  crew_.Fill(2);
  crew_.Seal(2);
  EXPECT_EQ(crew_.Record(0).updates_applied, 1);
}

TEST_F(EngineRelay, TheAnswerIsThatOfTheRoundThatItNames) {
  crew_.Fill(1);
  crew_.Seal(1);
  crew_.Seal(1);
  crew_.Order();
  crew_.Seal(1);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kOpen);
  crew_.DeliverAll();
  ASSERT_EQ(crew_.fleet.Handle(HandedUp{1, absl::AbortedError("late")}), absl::OkStatus());
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kClosed);
  crew_.Seal(1);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kClosed);
  crew_.Seal(2);
  EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
}

TEST_F(EngineRelay, AnOrderIsWithdrawnWhileItsRoundCollects) {
  crew_.Order();
  crew_.Deliver(0, 1);
  const Update late = crew_.MakeUpdate(1, 1);
  crew_.Withdraw();
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  EXPECT_THAT(crew_.OutcomesOf(0), ElementsAre(Outcome::kNotApplied));
  ASSERT_EQ(crew_.at(1).Say(late), absl::OkStatus());
  EXPECT_THAT(crew_.OutcomesOf(1), ElementsAre(Outcome::kNotApplied));
  crew_.Pass(1000);
  EXPECT_EQ(crew_.view().round, 1);
  EXPECT_THAT(upstream_.results, IsEmpty());
}

TEST_F(EngineRelay, AnOrderIsWithdrawnWhileItsResultIsHandedUp) {
  crew_.Fill(1);
  crew_.Withdraw();
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  for (const int64_t i : {0, 1}) EXPECT_THAT(crew_.OutcomesOf(i), ElementsAre(Outcome::kNotApplied));
  crew_.Pass(1000);
  EXPECT_EQ(crew_.view().round, 1);
}

TEST_F(EngineRelay, AnOrderIsWithdrawnBeforeItsRoundOpens) {
  crew_.Leave(1);
  crew_.Order();
  ASSERT_EQ(crew_.view().round, 0);
  crew_.Withdraw();
  crew_.Join(1);
  crew_.Pass(1000);
  EXPECT_EQ(crew_.view().round, 0);
}

// An operator gives up the round, not the order.
TEST_F(EngineRelay, ARoundThatIsGivenUpIsMadeAgain) {
  crew_.Order();
  crew_.Deliver(0, 1);
  ASSERT_EQ(crew_.fleet.Handle(AbortRequested{"by the operator"}), absl::OkStatus());
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  crew_.Pass(9);
  EXPECT_EQ(crew_.view().round, 2);
  EXPECT_EQ((*crew_.fleet.store()->LastRound())->plan->first_iteration, 399);
}

TEST_F(EngineRelay, ARoundWhoseUpdatesAreRefusedIsMadeAgain) {
  RunConfig root = RootRun();
  root.policy.norm_bound = 1e-3;
  ScriptedUpstream upstream;
  RelayCrew crew(&upstream, 2, root);
  crew.Order();
  crew.DeliverAll();
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kAborted);
  for (const int64_t i : {0, 1}) EXPECT_THAT(crew.OutcomesOf(i), ElementsAre(Outcome::kReset));
  EXPECT_THAT(upstream.results, IsEmpty());
  EXPECT_EQ(crew.view().round, 2) << "the order stands";
}

// What is handed up is out of an operator's hands.
TEST_F(EngineRelay, ARoundIsNotGivenUpWhileItsResultIsHandedUp) {
  crew_.Fill(1);
  ASSERT_EQ(crew_.fleet.Handle(AbortRequested{"by the operator"}), absl::OkStatus());
  ASSERT_EQ(crew_.fleet.Handle(PauseRequested{"by the operator"}), absl::OkStatus());
  ASSERT_EQ(crew_.fleet.Handle(StopRequested{}), absl::OkStatus());
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kClosed);
  crew_.Seal(1);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_THAT(crew_.OutcomesOf(0), ElementsAre(Outcome::kApplied));
  EXPECT_EQ((*crew_.fleet.store()->Run())->state, RunState::kStopped);
}

TEST_F(EngineRelay, AMessageFromAboveReachesTheClients) {
  crew_.Fill(1);
  crew_.Seal(1);
  const Downstream message = crew_.NextModel();
  crew_.Move(message);
  EXPECT_EQ(crew_.view().head.version, 58);
  EXPECT_EQ(crew_.view().head.model_hash, HashWeights(crew_.weights));
  EXPECT_EQ(crew_.fleet.engine()->weights(), crew_.weights);
  for (const int64_t i : {0, 1}) {
    const std::vector<Downstream> heard = crew_.at(i).All<Downstream>();
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].version, 58);
    EXPECT_EQ(heard[0].model_hash, message.model_hash);
    EXPECT_EQ(heard[0].message, message.message) << "one copy for all";
  }
  EXPECT_EQ(crew_.fleet.store()->ReadLog(57, 58)->at(0).downstream, *message.message);
  crew_.Order();
  EXPECT_EQ(crew_.at(0).All<Assignment>().back().base_version, 58);
  EXPECT_EQ(crew_.at(0).All<Assignment>().back().round, 2);
}

TEST_F(EngineRelay, AClientThatWasAwayGetsTheLog) {
  crew_.Leave(1);
  for (int i = 0; i < 2; ++i) crew_.Move(crew_.NextModel());
  crew_.Connect(1);
  const Id128 first = HashWeights(GridInitialWeights());
  ASSERT_EQ(crew_.at(1).Say(Ready{57, first, GridLayout().Hash(), 1}), absl::OkStatus());
  const std::vector<Downstream> log = crew_.at(1).All<Downstream>();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].version, 58);
  EXPECT_EQ(log[1].version, 59);
  EXPECT_EQ(log[1].model_hash, HashWeights(crew_.weights));
  crew_.Order();
  EXPECT_THAT(crew_.Working(1), ElementsAre(0, 1));
}

TEST_F(EngineRelay, AMessageThatIsDamagedOrOutOfOrderMovesNothing) {
  const std::vector<float> before = crew_.fleet.engine()->weights();
  const Downstream next = crew_.NextModel();
  Downstream other_hash = next, cut = next, skips = next, again = next;
  other_hash.model_hash = HashBytes("another");
  cut.message = std::make_shared<const std::string>(next.message->substr(0, next.message->size() / 2));
  skips.version = 59;
  again.version = 57;
  for (const Downstream& message : {other_hash, cut, skips, again}) {
    crew_.Move(message);
    EXPECT_EQ(crew_.view().head.version, 57);
    EXPECT_EQ(crew_.fleet.engine()->weights(), before);
    EXPECT_EQ(crew_.at(0).Count<Downstream>(), 0);
  }
  ASSERT_EQ(EventsOf(crew_.fleet, "model_drift").size(), 2u);
  EXPECT_THAT(EventsOf(crew_.fleet, "model_drift")[0].detail, HasSubstr("version 58"));
  crew_.Move(next);
  EXPECT_EQ(crew_.view().head.version, 58);
}

TEST_F(EngineRelay, CheckpointsFollowTheModel) {
  for (int i = 0; i < 4; ++i) crew_.Move(crew_.NextModel());
  EXPECT_EQ(crew_.fleet.store()->NewestCheckpointFile()->version, 61);
  crew_.Move(crew_.NextModel());
  crew_.Restart();
  EXPECT_EQ(crew_.view().head.version, 62);
  EXPECT_EQ(crew_.fleet.engine()->weights(), crew_.weights);
}

TEST_F(EngineRelay, AWholeModelSendsTheClientsToItsCheckpoint) {
  crew_.Move(crew_.NextModel());
  const std::vector<float> model = GridDelta(5, 5);
  ASSERT_EQ(crew_.fleet.ReplaceModel(90, model), absl::OkStatus());
  EXPECT_EQ(crew_.view().head.version, 90);
  EXPECT_EQ(crew_.view().head.model_hash, HashWeights(model));
  EXPECT_EQ(crew_.fleet.engine()->weights(), model);
  EXPECT_EQ(crew_.fleet.store()->NewestCheckpointFile()->version, 90);
  for (const int64_t i : {0, 1}) {
    const std::vector<Resync> resyncs = crew_.at(i).All<Resync>();
    ASSERT_EQ(resyncs.size(), 1u);
    EXPECT_EQ(resyncs[0].checkpoint_version, 90);
  }
  // Nobody holds it yet, so the next round waits.
  crew_.Order();
  EXPECT_EQ(crew_.view().round, 0);
  for (const int64_t i : {0, 1}) ASSERT_EQ(crew_.at(i).SayReady(), absl::OkStatus());
  EXPECT_THAT(crew_.Working(1), ElementsAre(0, 1));
  EXPECT_EQ(crew_.at(0).All<Assignment>().back().base_version, 90);
  EXPECT_EQ(crew_.fleet.ReplaceModel(90, GridDelta(6, 6)), absl::OkStatus()) << "it is there";
  EXPECT_EQ(crew_.fleet.engine()->weights(), model);
  crew_.Restart();
  EXPECT_EQ(crew_.fleet.engine()->weights(), model);
}

TEST_F(EngineRelay, AWholeModelWaitsForACheckpointThatIsBeingWritten) {
  crew_.fleet.hold_background(true);
  for (int i = 0; i < 4; ++i) crew_.Move(crew_.NextModel());
  EXPECT_TRUE(absl::IsUnavailable(crew_.fleet.ReplaceModel(90, GridDelta(5, 5))));
  EXPECT_EQ(crew_.view().head.version, 61);
  crew_.fleet.hold_background(false);
  crew_.Pass(1);
  EXPECT_EQ(crew_.fleet.ReplaceModel(90, GridDelta(5, 5)), absl::OkStatus());
  EXPECT_EQ(crew_.view().head.version, 90);
}

TEST_F(EngineRelay, TheRunEndsAsAbove) {
  crew_.Order();
  crew_.Deliver(0, 1);
  ASSERT_EQ(crew_.fleet.Handle(RunEndedAbove{"all rounds are done"}), absl::OkStatus());
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  EXPECT_THAT(crew_.OutcomesOf(0), ElementsAre(Outcome::kNotApplied));
  EXPECT_EQ(crew_.at(0).All<Finished>().at(0).reason, "all rounds are done");
  EXPECT_EQ((*crew_.fleet.store()->Run())->state, RunState::kFinished);
  EXPECT_TRUE(crew_.view().ended);
}

TEST_F(EngineRelay, ARunThatEndsWhileAResultIsHandedUpSettlesItFirst) {
  crew_.Fill(1);
  ASSERT_EQ(crew_.fleet.Handle(RunEndedAbove{"all rounds are done"}), absl::OkStatus());
  EXPECT_EQ(crew_.at(0).Count<Finished>(), 0);
  crew_.Seal(1);
  EXPECT_THAT(crew_.OutcomesOf(0), ElementsAre(Outcome::kApplied));
  EXPECT_EQ(crew_.at(0).Count<Finished>(), 1);
  EXPECT_TRUE(crew_.view().ended);
}

// Clients that come back while the result is handed up.
TEST_F(EngineRelay, AClientThatAsksMeanwhileHearsThatItIsPending) {
  crew_.Order();
  const Update update = crew_.MakeUpdate(0, 1);
  ASSERT_EQ(crew_.at(0).Say(update), absl::OkStatus());
  crew_.Deliver(1, 1);
  crew_.Leave(0);
  ScriptedClient again(&crew_.fleet, "c0", 5001);
  ASSERT_EQ(again.SayCheckIn({}, update.update_id, 1), absl::OkStatus());
  EXPECT_EQ(again.All<Welcome>().at(0).verdict->outcome, Outcome::kPending);
  ASSERT_EQ(again.SayReady(), absl::OkStatus());
  ASSERT_EQ(again.Say(update), absl::OkStatus()) << "it sends what is pending again";
  EXPECT_EQ(again.All<Verdict>().at(0).outcome, Outcome::kPending);
  crew_.Seal(1);
  EXPECT_EQ(again.All<Verdict>().at(1).outcome, Outcome::kApplied);
  EXPECT_EQ(crew_.LastApplied(0), update.update_id);
  // It takes part in the next round.
  crew_.Order();
  ASSERT_EQ(again.Count<Assignment>(), 1);
  ASSERT_EQ(again.Say(again.MakeUpdate(2, 0, 2, update.update_id)), absl::OkStatus());
  crew_.Deliver(1, 2);
  EXPECT_EQ(upstream_.results.size(), 2u);
}

// Its update counts or not, which nobody knows yet, so what it lost cannot be settled.
TEST_F(EngineRelay, AClientThatLostItsStateComesBackOnceTheResultIsSettled) {
  crew_.Fill(1);
  crew_.Seal(1);
  for (const bool sealed : {true, false}) {
    SCOPED_TRACE(sealed);
    const int64_t round = crew_.view().round + 1;
    const int64_t resets = crew_.Record(0).resets;
    const Id128 before = crew_.LastApplied(0);
    crew_.Fill(round);
    crew_.Leave(0);
    ScriptedClient lost(&crew_.fleet, "c0", 5001 + round);
    ASSERT_EQ(lost.SayCheckIn(), absl::OkStatus()) << "it knows of no update";
    ASSERT_EQ(lost.Count<Refusal>(), 1);
    EXPECT_TRUE(lost.All<Refusal>()[0].retry);
    EXPECT_THAT(lost.All<Refusal>()[0].reason, HasSubstr("is being handed up"));
    EXPECT_EQ(crew_.Record(0).resets, resets);
    ASSERT_EQ(lost.Disconnect(), absl::OkStatus());
    ASSERT_EQ(crew_.fleet.Handle(HandedUp{round, sealed ? absl::OkStatus() : absl::AbortedError("no")}),
              absl::OkStatus());
    EXPECT_EQ(crew_.LastApplied(0) != before, sealed);

    ScriptedClient back(&crew_.fleet, "c0", 6001 + round);
    ASSERT_EQ(back.SayCheckIn(), absl::OkStatus());
    const Verdict verdict = *back.All<Welcome>().at(0).verdict;
    EXPECT_EQ(verdict.outcome, Outcome::kReset);
    EXPECT_EQ(verdict.last_applied, crew_.LastApplied(0));
    EXPECT_EQ(crew_.Record(0).resets, resets + 1);
    // It goes on from there.
    ASSERT_EQ(back.SayReady(), absl::OkStatus());
    crew_.Order();
    ASSERT_EQ(back.Say(back.MakeUpdate(round + 1, 0, round + 1, verdict.last_applied)), absl::OkStatus());
    crew_.Deliver(1, round + 1);
    crew_.Seal(round + 1);
    EXPECT_EQ(back.All<Verdict>().at(0).outcome, Outcome::kApplied);
    ASSERT_EQ(back.Disconnect(), absl::OkStatus());
    crew_.Join(0);
  }
}

// The relay's process ends at each point of a round, and starts again.
class EngineRelayRestart : public EngineRelay {
 protected:
  // Restarts, and says what client 0 hears of its update of round 1 when it checks in.
  Outcome OutcomeAfterRestart() {
    crew_.Restart();
    ScriptedClient client(&crew_.fleet, "c0", 5001);
    EXPECT_EQ(client.SayCheckIn({}, pending_.update_id, 1), absl::OkStatus());
    const absl::optional<Verdict> verdict = client.All<Welcome>().at(0).verdict;
    EXPECT_EQ(verdict->update_id, pending_.update_id);
    EXPECT_EQ(client.Disconnect(), absl::OkStatus());
    return verdict->outcome;
  }
  void Collect(bool close) {
    crew_.Order();
    pending_ = crew_.MakeUpdate(0, 1);
    ASSERT_EQ(crew_.at(0).Say(pending_), absl::OkStatus());
    if (close) crew_.Deliver(1, 1);
    ASSERT_EQ(crew_.RoundStateOf(1), close ? RoundState::kClosed : RoundState::kOpen);
  }
  // Both clients go on, and the next round is made.
  void ExpectGoesOn() {
    upstream_.results.clear();
    for (const int64_t i : {0, 1}) crew_.Join(i);
    EXPECT_EQ(crew_.view().round, 1) << "it has no order any more";
    crew_.Fill(2);
    EXPECT_EQ(upstream_.results.at(0).round, 2);
    crew_.Seal(2);
    EXPECT_EQ(crew_.RoundStateOf(2), RoundState::kCommitted);
  }

  Update pending_;
};

TEST_F(EngineRelayRestart, AClosedRoundThatWasSealedIsCommitted) {
  Collect(/*close=*/true);
  upstream_.sealed = 1;
  EXPECT_EQ(OutcomeAfterRestart(), Outcome::kApplied);
  EXPECT_THAT(upstream_.asked, ElementsAre((*crew_.fleet.store()->Run())->lineage));
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_EQ(crew_.LastApplied(0), pending_.update_id);
  EXPECT_EQ(crew_.view().head.version, 57);
  crew_.Seal(1);  // what the relay's state told already
  ExpectGoesOn();
}

TEST_F(EngineRelayRestart, AClosedRoundThatWasNotSealedIsAborted) {
  Collect(/*close=*/true);
  EXPECT_EQ(OutcomeAfterRestart(), Outcome::kNotApplied);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  EXPECT_TRUE(crew_.LastApplied(0).IsZero());
  EXPECT_THAT(EventsOf(crew_.fleet, "round_aborted").back().detail, HasSubstr("before the round's result was sealed"));
  ExpectGoesOn();
}

TEST_F(EngineRelayRestart, AnOpenRoundIsAborted) {
  Collect(/*close=*/false);
  upstream_.sealed = 1;  // of what an open round is, nothing can be sealed
  EXPECT_EQ(OutcomeAfterRestart(), Outcome::kNotApplied);
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
  ExpectGoesOn();
}

TEST_F(EngineRelayRestart, ASettledRoundIsLeftAsItIs) {
  crew_.Fill(1);
  crew_.Seal(1);
  crew_.Restart();
  EXPECT_THAT(upstream_.asked, IsEmpty());
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kCommitted);
  ExpectGoesOn();
}

TEST_F(EngineRelayRestart, ItWaitsWhileTheResultIsBeingSealed) {
  Collect(/*close=*/true);
  upstream_.sealed = absl::UnavailableError("it is being sealed");
  crew_.fleet.KillCoordinator();
  EXPECT_TRUE(absl::IsUnavailable(crew_.fleet.StartCoordinator()));
  upstream_.sealed = 1;
  EXPECT_EQ(OutcomeAfterRestart(), Outcome::kApplied);
}

TEST_F(EngineRelayRestart, ARunThatEndedAboveStaysEnded) {
  Collect(/*close=*/true);
  ASSERT_EQ(crew_.fleet.Handle(RunEndedAbove{"all rounds are done"}), absl::OkStatus());
  crew_.Restart();
  EXPECT_EQ(crew_.RoundStateOf(1), RoundState::kAborted);
}

// What a relay's clients are told when they join.

TEST_F(EngineRelay, AClientOfARelayIsWelcomedWithFamilyAndShard) {
  const Id128 lineage = (*crew_.fleet.store()->Run())->lineage;
  for (const int64_t i : {0, 1}) {
    const Welcome welcome = crew_.at(i).All<Welcome>().at(0);
    EXPECT_EQ(welcome.lineage, lineage);
    EXPECT_EQ(welcome.family, Family());
    EXPECT_EQ(welcome.start_hash, RootStart());
    EXPECT_EQ(welcome.head_version, 57);
    EXPECT_EQ(welcome.layout, nullptr);
    ASSERT_TRUE(welcome.shards.has_value());
    EXPECT_EQ(welcome.shards->first, 4 + i);
    EXPECT_EQ(welcome.shards->count, 1);
  }
  // More clients than it has shards share them.
  crew_.Join(2);
  EXPECT_EQ(crew_.at(2).All<Welcome>().at(0).shards->first, 4);
}

TEST_F(EngineRelay, AClientOfTheSameFamilyBringsItsResidual) {
  CheckIn message;
  message.name = "mover";
  message.lineage = HashBytes("another relay");
  message.family = Family();
  message.prev_applied = HashBytes("applied there");
  ScriptedClient mover(&crew_.fleet, "mover", 5001);
  ASSERT_EQ(mover.Say(message), absl::OkStatus());
  const Welcome welcome = mover.All<Welcome>().at(0);
  EXPECT_FALSE(welcome.verdict.has_value());
  EXPECT_EQ(crew_.Record(welcome.client_index).resets, 0);
  EXPECT_THAT(EventsOf(crew_.fleet, "residual_lost"), IsEmpty());
}

Welcome WelcomeOf(Crew& crew, const std::string& name, SessionId session, bool relay) {
  ScriptedClient client(&crew.fleet, name, session);
  client.relay = relay;
  EXPECT_EQ(client.SayCheckIn(), absl::OkStatus());
  return client.All<Welcome>().at(0);
}

TEST_F(EngineRelay, ARelayIsWelcomedWithTheLayoutAndItsShards) {
  RunConfig config = GridRunConfig(3, 1000);
  config.data.shards = 10;
  Crew root(config, 0);
  std::vector<std::pair<int64_t, int64_t>> shards;
  for (int64_t i = 0; i < 5; ++i) {
    const Welcome welcome = WelcomeOf(root, absl::StrCat("relay", i), 2001 + i, /*relay=*/true);
    ASSERT_NE(welcome.layout, nullptr);
    EXPECT_EQ(welcome.layout->Hash(), GridLayout().Hash());
    EXPECT_EQ(welcome.family, welcome.lineage);
    EXPECT_EQ(welcome.start_hash, HashWeights(GridInitialWeights()));
    shards.emplace_back(welcome.shards->first, welcome.shards->count);
  }
  // No range goes beyond the last shard.
  EXPECT_THAT(shards, ElementsAre(std::pair(0, 3), std::pair(3, 3), std::pair(6, 3), std::pair(0, 3), std::pair(3, 3)));

  // Other clients know their shard by their index.
  const Welcome plain = WelcomeOf(root, "plain", 3001, /*relay=*/false);
  EXPECT_EQ(plain.layout, nullptr);
  EXPECT_FALSE(plain.shards.has_value());
  EXPECT_EQ(plain.client_index, 5);
}

TEST_F(EngineRelay, ARelayHasAShardWhereThereAreFew) {
  Crew root(GridRunConfig(3, 1000), 0);
  for (int64_t i = 0; i < 3; ++i) {
    const Welcome welcome = WelcomeOf(root, absl::StrCat("relay", i), 2001 + i, /*relay=*/true);
    EXPECT_EQ(welcome.shards->first, i);
    EXPECT_EQ(welcome.shards->count, 1);
  }
  RunConfig config = GridRunConfig(3, 1000);
  config.data.partition = "all";
  Crew uncut(config, 0);
  EXPECT_FALSE(WelcomeOf(uncut, "relay", 2001, /*relay=*/true).shards.has_value());
}

TEST_F(EngineRelay, ARelayBelowARelayGetsItsPartOfTheShards) {
  const Welcome first = WelcomeOf(crew_, "relay0", 2001, /*relay=*/true);  // client 2 of a relay with shards 4 and 5
  EXPECT_EQ(first.shards->first, 4);
  EXPECT_EQ(first.shards->count, 1);
  EXPECT_NE(first.layout, nullptr);
  EXPECT_EQ(first.family, Family());
}

// A coordinator with relays among its clients.
class EngineWithRelays : public ::testing::Test {
 protected:
  static RunConfig Config(Weighting weighting) {
    RunConfig config = GridRunConfig(3, 1000);
    config.rounds.weighting = weighting;
    return config;
  }
  // Relays "c0", "c1" and the plain client "c2", with 90, 20 and 40 samples, take part in round 1.
  void Begin(Crew& crew) {
    for (int64_t i = 0; i < 3; ++i) {
      members_.push_back(std::make_unique<ScriptedClient>(&crew.fleet, absl::StrCat("c", i), 2001 + i));
      members_.back()->relay = i < 2;
      ASSERT_EQ(members_.back()->SayCheckIn(), absl::OkStatus());
    }
    constexpr int64_t kSamples[] = {90, 20, 40};
    for (int64_t i = 0; i < 3; ++i) ASSERT_EQ(members_[i]->SayReady(kSamples[i]), absl::OkStatus());
    for (int64_t i = 0; i < 3; ++i) {
      ASSERT_EQ(members_[i]->Count<Assignment>(), 1);
      updates_.push_back(members_[i]->MakeUpdate(1, i, 1));
    }
    updates_[0].cohort = {6, 60};
    updates_[1].cohort = {3, 21};
  }
  // Returns the shares with which the updates went into the model.
  std::vector<int64_t> SamplesOfRoundOne(Crew& crew) {
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(members_[i]->Say(updates_[i]), absl::OkStatus());
    EXPECT_EQ(crew.view().head.version, 1);
    const std::vector<LogMessage> log = *crew.fleet.store()->ReadLog(0, 1);
    std::vector<float> weights = GridInitialWeights();
    EXPECT_EQ(log[0].model_hash, crew.view().head.model_hash);
    const Forwarded forwarded = *ParseForwarded(log[0].downstream);
    EXPECT_EQ(forwarded.updates.size(), 3u);
    return forwarded.samples;
  }

  std::vector<std::unique_ptr<ScriptedClient>> members_;
  std::vector<Update> updates_;
};

TEST_F(EngineWithRelays, UniformWeightingCountsClients) {
  Crew crew(Config(Weighting::kUniform), 0);
  Begin(crew);
  EXPECT_THAT(SamplesOfRoundOne(crew), ElementsAre(6, 3, 1));
  // The model is what the shares say.
  std::vector<float> mean(GridLayout().size()), weights = GridInitialWeights();
  const std::vector<absl::string_view> messages = {updates_[0].message, updates_[1].message, updates_[2].message};
  ASSERT_EQ(AverageUpdates(crew.fleet.codec(), messages, AveragingWeights({6, 3, 1}), 1, absl::MakeSpan(mean)),
            absl::OkStatus());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += mean[i];
  EXPECT_EQ(crew.view().head.model_hash, HashWeights(weights));
  for (const auto& member : members_) EXPECT_EQ(member->All<Verdict>().at(0).outcome, Outcome::kApplied);
}

TEST_F(EngineWithRelays, WeightingBySamplesTakesThoseOfTheUpdate) {
  Crew crew(Config(Weighting::kSamples), 0);
  Begin(crew);
  EXPECT_THAT(SamplesOfRoundOne(crew), ElementsAre(60, 21, 40)) << "of the clients that were in it, not of all";
}

// Relays that each stand for one client weigh alike, and so does a fleet without any.
TEST_F(EngineWithRelays, AFleetWithoutRelaysIsNotWeighted) {
  Crew crew(Config(Weighting::kUniform), 0);
  Begin(crew);
  for (Update& update : updates_) update.cohort = {};
  EXPECT_THAT(SamplesOfRoundOne(crew), IsEmpty());
}

// A rule that compares updates gives every sender one vote.
TEST_F(EngineWithRelays, AVoteIsASendersOwn) {
  RunConfig config = Config(Weighting::kUniform);
  config.aggregation.rule = "median";
  config.downstream = DownstreamMode::kDense;
  Crew crew(config, 0);
  Begin(crew);
  for (int64_t i = 0; i < 3; ++i) ASSERT_EQ(members_[i]->Say(updates_[i]), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 1);
}

TEST_F(EngineWithRelays, OnlyARelaysUpdateStandsForOthers) {
  Crew crew(Config(Weighting::kUniform), 0);
  Begin(crew);
  Update claim = updates_[2];
  claim.cohort = {1000, 1000};
  members_[2]->Forget();
  ASSERT_EQ(members_[2]->Say(claim), absl::OkStatus());
  ASSERT_EQ(members_[2]->Count<Refusal>(), 1);
  EXPECT_THAT(members_[2]->All<Refusal>()[0].reason, HasSubstr("only a relay's update stands for other clients"));
  EXPECT_FALSE(members_[2]->All<Refusal>()[0].retry);
  EXPECT_EQ(EventsOf(crew.fleet, "update_rejected").size(), 1u);
  // It counts for nothing in the round.
  for (int64_t i = 0; i < 2; ++i) ASSERT_EQ(members_[i]->Say(updates_[i]), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 0);
  ScriptedClient back(&crew.fleet, "c2", 2010);
  ASSERT_EQ(back.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(back.SayReady(40), absl::OkStatus());
  ASSERT_EQ(back.Say(updates_[2]), absl::OkStatus());
  EXPECT_EQ(crew.view().head.version, 1);
  EXPECT_THAT(ParseForwarded(crew.fleet.store()->ReadLog(0, 1)->at(0).downstream)->samples, ElementsAre(6, 3, 1));
}

TEST(RelayConfigTest, TheRoundsAreTheRelaysAndTheRestIsTheRuns) {
  RunConfig root = RootRun();
  root.limits.seconds = 5;
  root.rounds.grace_seconds = 3;
  root.rounds.buffered = true;
  const auto config = [&](int64_t clients, int64_t quorum, double seconds) {
    return RelayConfig(root, {clients, quorum, seconds});
  };
  EXPECT_EQ(config(2, 0, 0).rounds.clients, 5) << "clients allow for as many updates in a message as the run has";
  EXPECT_EQ(config(8, 0, 0).rounds.clients, 8);
  EXPECT_EQ(config(8, 0, 0).rounds.cohort, 8);
  EXPECT_EQ(config(8, 0, 0).rounds.invited, 8);
  EXPECT_EQ(config(7, 0, 0).rounds.quorum, 4) << "half of them";
  EXPECT_EQ(config(7, 2, 0).rounds.quorum, 2);
  EXPECT_EQ(config(7, 9, 0).rounds.quorum, 7);
  EXPECT_DOUBLE_EQ(config(7, 0, 0).rounds.deadline_seconds, 8);
  EXPECT_EQ(config(7, 0, 3).rounds.deadline_seconds, 3);
  EXPECT_EQ(config(7, 0, 0).rounds.grace_seconds, 0);
  EXPECT_FALSE(config(7, 0, 0).rounds.buffered);
  EXPECT_EQ(config(7, 0, 0).limits.seconds, 0) << "what ends the run is decided above";
  EXPECT_EQ(config(7, 0, 0).name, root.name);
  EXPECT_EQ(config(7, 0, 0).rounds.count, root.rounds.count);
  root.aggregation.rule = "krum";
  root.aggregation.byzantine = 1;
  EXPECT_GE(config(7, 0, 0).rounds.quorum, 4) << "as many as the rule needs";
}

}  // namespace
}  // namespace terse
