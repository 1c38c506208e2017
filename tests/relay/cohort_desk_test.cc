// The place where the two halves of a relay meet: the client half is the test, and the run and its engine are real.
#include "relay/cohort_desk.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compression/bundle.h"
#include "compression/downstream.h"
#include "compression/run_codecs.h"
#include "core/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_convert.h"
#include "proto/run_config_loader.h"
#include "relay/cohort_trainer.h"
#include "storage/run_stores.h"
#include "tests/testing/grid_learning.h"
#include "tests/testing/scripted_client.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr char kRun[] =
    "name = 'grid'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 0.1\n[codec]\nname = 'sbc'\n"
    "[rounds]\ncount = 100\n";

class CohortDeskTest : public ::testing::Test {
 protected:
  virtual bool forwards() const { return false; }
  void SetUp() override {
    RunRegistry::Options options;
    options.state_directory = directory_.path();
    options.stores = RunsInDirectories(directory_.path());
    options.clock = &clock_;
    options.make_learning = GridLearningFactory();
    options.on_change = [] {};
    options.on_sync_failure = [](const absl::Status& status) { ADD_FAILURE() << status; };
    options.relay = {&desk_, RelayRounds{1, 0, 0, forwards()}};
    runs_ = RunRegistry::Open(std::move(options), {}).value();
    runs_->Start();
    desk_.Begin(runs_.get(), [](const absl::Status& status) { ADD_FAILURE() << status; });
    Welcome welcome;
    welcome.lineage = welcome.family = HashBytes("root");
    welcome.layout = std::make_shared<const Layout>(GridLayout());
    welcome.shards = ShardRange{0, 1};
    welcome.wire_config = ParseRunConfig(kRun, "run.toml").value().SerializeAsString();
    desk_.Join(welcome);
    desk_.TakeModel(57, GridInitialWeights());
    ASSERT_EQ(runs_->runs().size(), 1u);
    // A client, so that rounds can be made.
    Tell(Connected{1, link_});
    CheckIn check_in;
    check_in.name = "a";
    Tell(Received{1, check_in});
    SayReady();
  }
  void TearDown() override { EXPECT_EQ(runs_->Stop(), absl::OkStatus()); }

  RunHost& run() { return *runs_->runs().at(0); }
  // Gives the run an event, and waits until it is handled.
  void Tell(Event event) {
    const absl::Status told = run().Use([&](const RunHost::Live& live) {
      live.loop->Post(std::move(event));
      return live.loop->Call([] {});
    });
    EXPECT_EQ(told, absl::OkStatus());
  }
  // Waits until all that was said to the run is handled.
  void Settle() { Tell(Tick{}); }
  void SayReady() {
    const Head head = run().View().head;
    Tell(Received{1, Ready{head.version, head.model_hash, GridLayout().Hash(), 30}});
  }
  RoundOrder OrderFrom(int64_t version) const {
    RoundOrder order;
    order.plan.local_steps = 1;
    order.base_version = version;
    return order;
  }
  absl::optional<RoundState> StateOf(int64_t round) {
    Settle();
    absl::optional<RoundState> state;
    const absl::Status read = run().Use([&](const RunHost::Live& live) -> absl::Status {
      state = live.store->GetRoundState(round).value();
      return absl::OkStatus();
    });
    EXPECT_EQ(read, absl::OkStatus());
    return state;
  }
  // The client delivers in the open round, if it has not.
  void Deliver() {
    const int64_t round = run().View().round;
    if (round == delivered_ || run().View().phase != "collecting updates") return;
    delivered_ = round;
    const std::unique_ptr<const Codec> codec = MakeUpdateCodec(run().config(), GridLayout()).value();
    Update update;
    update.round = round;
    update.message = codec->Encode(GridDelta(0, round)).value();
    update.update_id = MakeUpdateId(run().lineage(), round, 0, last_applied_, update.message);
    last_sent_ = update.update_id;
    FromClient message = update;
    ASSERT_EQ(TakeMessage(*codec, nullptr, 0, &message), absl::OkStatus());
    Tell(Received{1, std::move(message)});
  }
  // The client delivers whenever it has work. Gives up after some seconds.
  std::function<bool()> Delivering() {
    return [this, left = 100]() mutable {
      Deliver();
      return --left > 0;
    };
  }
  // The number of the round that was made of an order; -1: none was.
  int64_t MakeRound(int64_t version) {
    const absl::StatusOr<CohortResult> made = desk_.MakeRound(OrderFrom(version), Delivering());
    EXPECT_EQ(made.status(), absl::OkStatus());
    return made.ok() ? made->round : -1;
  }
  void Seal() {
    desk_.Seal();
    Settle();
    last_applied_ = last_sent_;
  }

  const TempDirectory directory_;
  SystemClock clock_;
  std::atomic<bool> stop_{false};
  CohortDesk desk_{&stop_};
  std::unique_ptr<RunRegistry> runs_;
  const std::shared_ptr<RecordingLink> link_ = std::make_shared<RecordingLink>();
  int64_t delivered_ = 0;
  Id128 last_sent_, last_applied_;
};

TEST_F(CohortDeskTest, TheRunIsMadeFromTheFirstModel) {
  EXPECT_EQ(run().View().head.version, 57);
  EXPECT_EQ(run().family(), HashBytes("root"));
  EXPECT_TRUE(desk_.Reaches(57));
  EXPECT_FALSE(desk_.Reaches(58));
  EXPECT_EQ(desk_.samples(), 30);
  desk_.TakeModel(90, GridDelta(1, 1));
  EXPECT_TRUE(desk_.Reaches(90));
}

TEST_F(CohortDeskTest, ARoundIsCommittedOnceItsResultIsSealed) {
  const absl::StatusOr<CohortResult> first = desk_.MakeRound(OrderFrom(57), Delivering());
  ASSERT_EQ(first.status(), absl::OkStatus());
  EXPECT_EQ(first->round, 1);
  EXPECT_EQ(first->cohort.clients, 1);
  EXPECT_EQ(first->cohort.samples, 30);
  EXPECT_EQ(StateOf(1), RoundState::kClosed);
  EXPECT_EQ(desk_.taken().lineage, run().lineage());
  EXPECT_EQ(desk_.taken().round, 1) << "this is sealed with the update";
  EXPECT_TRUE(absl::IsUnavailable(desk_.SealedRound(run().lineage()).status())) << "nobody knows yet";
  Seal();
  EXPECT_EQ(StateOf(1), RoundState::kCommitted);
  EXPECT_EQ(desk_.SealedRound(run().lineage()).value(), 1);
  EXPECT_EQ(desk_.SealedRound(HashBytes("another")).value(), 0);
  desk_.Seal();
  EXPECT_EQ(MakeRound(57), 2);
}

TEST_F(CohortDeskTest, ItTellsWhatIsBelow) {
  EXPECT_EQ(desk_.Below()->clients, 1);
  EXPECT_EQ(desk_.Below()->payload_bytes_up, 0);
  MakeRound(57);
  Seal();
  const int64_t of_a_round = desk_.Below()->payload_bytes_up;
  EXPECT_GT(of_a_round, 0);
  // A relay below counts with what is below it, and as long as it is connected with its clients.
  const absl::Status told = run().Use([](const RunHost::Live& live) -> absl::Status {
    const absl::StatusOr<ClientRecord> away = live.store->RegisterClient("away", 1);
    EXPECT_EQ(live.store->SetBelow({0, {7, 100, 200, 300, 400}}), absl::OkStatus());
    return live.store->SetBelow({away->id, {50, 1000, 2000, 3000, 4000}});
  });
  ASSERT_EQ(told, absl::OkStatus());
  EXPECT_EQ(desk_.Below()->clients, 7);
  EXPECT_EQ(desk_.Below()->payload_bytes_up, of_a_round + 1100);
  EXPECT_GE(desk_.Below()->wire_bytes_down, 4400);
}

// The state that was read again tells what became of the result.
TEST_F(CohortDeskTest, AResultThatTheStateDoesNotHaveIsNotApplied) {
  for (const SealedCohort& other : {SealedCohort(), SealedCohort{HashBytes("another"), 99}}) {
    const int64_t round = MakeRound(57);
    desk_.SetSealed(other);
    EXPECT_EQ(StateOf(round), RoundState::kAborted);
  }
  const int64_t round = MakeRound(57);
  desk_.SetSealed(desk_.taken());
  EXPECT_EQ(StateOf(round), RoundState::kCommitted);
}

TEST_F(CohortDeskTest, AResultThatNobodySealedIsSettledBeforeTheModelMoves) {
  std::vector<float> weights = GridInitialWeights();
  const std::vector<float> step = GridDelta(7, 7);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += step[i];

  ASSERT_EQ(MakeRound(57), 1);
  desk_.TakeMessage({58, HashWeights(weights), std::make_shared<const std::string>(BuildDenseDownstream(step))});
  EXPECT_EQ(StateOf(1), RoundState::kAborted);
  EXPECT_EQ(run().View().head.version, 58);

  ASSERT_EQ(MakeRound(58), 2);
  desk_.TakeModel(90, weights);
  EXPECT_EQ(StateOf(2), RoundState::kAborted);
  EXPECT_EQ(run().View().head.version, 90);
}

TEST_F(CohortDeskTest, AnOrderIsWithdrawnWhenTheClientHalfStops) {
  int asked = 0;
  const absl::Status stopped = desk_.MakeRound(OrderFrom(57), [&] { return ++asked < 3; }).status();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_EQ(StateOf(1), RoundState::kAborted);
  desk_.HandUp({1, GridDelta(0, 0), "", 0, {1, 1}, {}});  // it comes late
  EXPECT_EQ(desk_.taken().round, 0);
}

// A result that came later could be taken for that of the next order, though its clients hear NOT_APPLIED.
TEST_F(CohortDeskTest, AnOrderThatIsWithdrawnGivesNoResultAnyMore) {
  for (int64_t round = 1; round <= 20; ++round) {
    bool is_first = true;
    const auto stop_after_it_opened = [&] { return std::exchange(is_first, false); };
    EXPECT_TRUE(absl::IsCancelled(desk_.MakeRound(OrderFrom(57), stop_after_it_opened).status()));
    // Not Settle: it must be so when MakeRound returns.
    EXPECT_NE(run().View().phase, "collecting updates") << "round " << round;
    SayReady();
  }
  EXPECT_EQ(MakeRound(57), 21);
}

TEST_F(CohortDeskTest, ADeclinedOrderEnds) {
  const absl::Status status = desk_.MakeRound(OrderFrom(58), Delivering()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("from version 58, and the relay's model is at 57"));
  // The round of an order that is declined when it is open already does not stay behind.
  const auto decline = [&] {
    desk_.Decline("of an order before");
    return true;
  };
  EXPECT_TRUE(absl::IsUnavailable(desk_.MakeRound(OrderFrom(57), decline).status()));
  EXPECT_NE(run().View().phase, "collecting updates");
  SayReady();
  EXPECT_GE(MakeRound(57), 1);
}

TEST_F(CohortDeskTest, TheRunEndsWithTheOneAbove) {
  desk_.Finish("all rounds are done");
  Settle();
  EXPECT_EQ(run().Record()->state, RunState::kFinished);
  EXPECT_EQ(run().Record()->reason, "all rounds are done");
}

TEST_F(CohortDeskTest, ARunOfAnotherFamilyTakesItsPlace) {
  Welcome other = desk_.welcome();
  other.lineage = other.family = HashBytes("another root");
  desk_.Join(other);
  EXPECT_TRUE(runs_->runs().empty());
  EXPECT_FALSE(desk_.Reaches(0));
  desk_.TakeModel(3, GridInitialWeights());
  EXPECT_EQ(run().View().head.version, 3);
  EXPECT_EQ(run().family(), HashBytes("another root"));
}

// An update of the grid's first client, in a bundle.
std::string SomeBundle(const Codec& codec, int64_t round) {
  const std::string message = codec.Encode(GridDelta(0, round)).value();
  return BuildBundle({{message, {1, 30}}}).value();
}

TEST(CohortStateTest, ComesBackFromItsBytes) {
  const std::unique_ptr<const Codec> codec =
      MakeUpdateCodec(ToCore(ParseRunConfig(kRun, "run.toml").value()).value(), GridLayout()).value();
  CohortState state{{HashBytes("lineage"), 12}, ""};
  const std::string mean = SerializeCohortState(state);
  state.bundle = SomeBundle(*codec, 12);
  for (const std::string& bytes : {mean, SerializeCohortState(state)}) {
    EXPECT_EQ(ParseCohortState(bytes)->sealed.lineage, state.sealed.lineage);
    EXPECT_EQ(ParseCohortState(bytes)->sealed.round, 12);
    EXPECT_EQ(ParseCohortState(bytes)->bundle, bytes == mean ? "" : state.bundle);
  }
  for (size_t size = 0; size < mean.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(ParseCohortState(mean.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseCohortState(mean + "x").status()));
}

class ForwardingDeskTest : public CohortDeskTest {
 protected:
  bool forwards() const override { return true; }

  const std::unique_ptr<const Codec> codec_ =
      MakeUpdateCodec(ToCore(ParseRunConfig(kRun, "run.toml").value()).value(), GridLayout()).value();
  CohortTrainer trainer_{&desk_, GridLayout(), /*forwards=*/true};
};

// A bundle that is not applied is sent again before any other round is made; one that is, or that was reset, is not.
TEST_F(ForwardingDeskTest, WhatIsNotAppliedIsHandedUpAgain) {
  std::vector<float> delta(GridLayout().size(), 5);
  const auto train = [&] { return trainer_.Train({}, {1, 0, 1, 57}, Delivering(), absl::MakeSpan(delta)); };
  const absl::StatusOr<TrainResult> first = train();
  ASSERT_EQ(first.status(), absl::OkStatus());
  const std::vector<BundledUpdate> parts = ParseBundle(first->message).value();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].message, codec_->Encode(GridDelta(0, 1)).value());
  EXPECT_EQ(parts[0].cohort.samples, 30);
  EXPECT_EQ(delta, std::vector<float>(GridLayout().size(), 0)) << "there is no residual";
  trainer_.OnSealed(1);
  last_applied_ = last_sent_;
  EXPECT_EQ(StateOf(1), RoundState::kCommitted) << "it is the relay's own from here on";

  trainer_.OnSettled(/*is_left=*/true);
  const std::string state = trainer_.SaveState().value();
  const absl::StatusOr<TrainResult> again = train();
  ASSERT_EQ(again.status(), absl::OkStatus());
  EXPECT_EQ(again->message, first->message);
  EXPECT_EQ(again->cohort.clients, 1);
  EXPECT_EQ(again->cohort.samples, 30);
  EXPECT_EQ(run().View().round, 1) << "and nobody trained for it";

  // Another process knows it from its state.
  CohortTrainer next(&desk_, GridLayout(), /*forwards=*/true);
  ASSERT_EQ(next.RestoreState(state), absl::OkStatus());
  next.OnSettled(/*is_left=*/true);
  EXPECT_EQ(next.Train({}, {1, 0, 2, 57}, Delivering(), absl::MakeSpan(delta))->message, first->message);

  trainer_.OnSettled(/*is_left=*/false);
  const absl::StatusOr<TrainResult> other = train();
  ASSERT_EQ(other.status(), absl::OkStatus());
  EXPECT_NE(other->message, first->message);
  EXPECT_EQ(run().View().round, 2);
}

TEST_F(ForwardingDeskTest, TheOtherModesStateIsRefused) {
  CohortTrainer recompressing(&desk_, GridLayout(), /*forwards=*/false);
  const std::string mean = SerializeCohortState({{HashBytes("lineage"), 1}, ""});
  const std::string bundle = SerializeCohortState({{HashBytes("lineage"), 1}, SomeBundle(*codec_, 1)});
  EXPECT_EQ(trainer_.RestoreState(bundle), absl::OkStatus());
  EXPECT_EQ(recompressing.RestoreState(mean), absl::OkStatus());
  const absl::Status forwarding = trainer_.RestoreState(mean);
  EXPECT_TRUE(absl::IsFailedPrecondition(forwarding));
  EXPECT_THAT(forwarding.message(), HasSubstr("start it with that mode"));
  EXPECT_TRUE(absl::IsFailedPrecondition(recompressing.RestoreState(bundle)));
}

}  // namespace
}  // namespace terse
