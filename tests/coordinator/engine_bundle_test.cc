// Relays that forward: their engine, whose results are bundles, and a coordinator to which bundles come.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compression/aggregate.h"
#include "compression/bundle.h"
#include "compression/downstream.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "coordinator/message_checks.h"
#include "coordinator/upstream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TakingUpstream : public Upstream {
 public:
  absl::StatusOr<int64_t> SealedRound(Id128) override { return 0; }
  void HandUp(CohortResult result) override { results.push_back(std::move(result)); }
  void Decline(const std::string& reason) override { ADD_FAILURE() << reason; }

  std::vector<CohortResult> results;
};

RelaySetup ForwardingSetup(Upstream* upstream) {
  RelaySetup setup;
  setup.upstream = upstream;
  setup.family = HashBytes("lineage of the root");
  setup.rounds.clients = 2;
  setup.rounds.forwards = true;
  return setup;
}

RunConfig RunOf(int64_t clients) {
  RunConfig config = GridRunConfig(clients, 1000);
  config.downstream = DownstreamMode::kAuto;
  return config;
}

TEST(EngineThatForwards, ItsResultsAreItsClientsUpdates) {
  TakingUpstream upstream;
  const RelaySetup setup = ForwardingSetup(&upstream);
  Crew crew(RelayConfig(RunOf(2), setup.rounds), 1, setup, 57);
  // Its second client is a relay that forwards too: bundles are not nested.
  ScriptedClient relay(&crew.fleet, "relay", 5001);
  relay.relay = true;
  ASSERT_EQ(relay.SayCheckIn(), absl::OkStatus());
  ASSERT_EQ(relay.SayReady(/*samples=*/90), absl::OkStatus());
  crew.Join(0, /*samples=*/30);
  RoundOrder order;
  order.plan.local_steps = 1;
  order.base_version = 57;
  ASSERT_EQ(crew.fleet.Handle(RoundOrdered{order}), absl::OkStatus());
  const Update plain = crew.MakeUpdate(0, 1);
  ASSERT_EQ(crew.at(0).Say(plain), absl::OkStatus());
  const std::string others[] = {relay.MakeUpdate(1, 5, 1).message, relay.MakeUpdate(1, 6, 1).message};
  Update bundle = relay.MakeUpdate(1, 1, 1);
  bundle.message = BuildBundle({{others[0], {1, 10}}, {others[1], {4, 50}}}).value();
  bundle.update_id = MakeUpdateId((*crew.fleet.store()->Run())->lineage, 1, 1, {}, bundle.message);
  bundle.cohort = {5, 60};
  ASSERT_EQ(relay.Say(bundle), absl::OkStatus());

  ASSERT_EQ(upstream.results.size(), 1u);
  EXPECT_THAT(upstream.results[0].delta, IsEmpty());
  EXPECT_EQ(upstream.results[0].cohort.clients, 6);
  EXPECT_EQ(upstream.results[0].cohort.samples, 90);
  const std::vector<BundledUpdate> parts = ParseBundle(upstream.results[0].bundle).value();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].message, plain.message);
  EXPECT_EQ(parts[0].cohort.clients, 1);
  EXPECT_EQ(parts[0].cohort.samples, 30);
  EXPECT_EQ(parts[1].message, others[0]);
  EXPECT_EQ(parts[2].message, others[1]);
  EXPECT_EQ(parts[2].cohort.clients, 4);
  EXPECT_EQ(parts[2].cohort.samples, 50);
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kClosed);
  ASSERT_EQ(crew.fleet.Handle(HandedUp{1, absl::OkStatus()}), absl::OkStatus());
  EXPECT_EQ(crew.RoundStateOf(1), RoundState::kCommitted);
  EXPECT_EQ(relay.All<Verdict>().at(0).outcome, Outcome::kApplied);
}

// A coordinator with the relay "c0", which forwards the updates of three clients, and the plain client "c1".
class EngineToldBundles : public ::testing::Test {
 protected:
  void Begin(const RunConfig& config) {
    crew_ = std::make_unique<Crew>(config, 0);
    for (int64_t i = 0; i < 2; ++i) {
      members_.push_back(std::make_unique<ScriptedClient>(&crew_->fleet, absl::StrCat("c", i), 2001 + i));
      members_[i]->relay = i == 0;
      ASSERT_EQ(members_[i]->SayCheckIn(), absl::OkStatus());
      ASSERT_EQ(members_[i]->SayReady(/*samples=*/40), absl::OkStatus());
    }
    for (int64_t client = 0; client < 4; ++client) {
      messages_.push_back(members_[0]->MakeUpdate(1, client, 1).message);
    }
  }
  // The updates of the relay's clients, with these samples.
  Update Bundle(const std::vector<std::string>& messages, const std::vector<int64_t>& samples) {
    std::vector<BundledUpdate> parts;
    for (size_t i = 0; i < messages.size(); ++i) parts.push_back({messages[i], {1, samples[i]}});
    Update update = members_[0]->MakeUpdate(1, 0, 1);
    update.message = BuildBundle(parts).value();
    update.cohort = CohortOf(parts);
    update.update_id = MakeUpdateId((*crew_->fleet.store()->Run())->lineage, 1, 0, {}, update.message);
    return update;
  }
  Update BundleOfThree() { return Bundle({messages_[0], messages_[1], messages_[2]}, {10, 20, 30}); }
  Update Plain() {
    Update update = members_[1]->MakeUpdate(1, 1, 1);
    update.message = messages_[3];
    update.update_id = MakeUpdateId((*crew_->fleet.store()->Run())->lineage, 1, 1, {}, update.message);
    return update;
  }
  // The hash of the first model with the average of the messages of that numbers.
  Id128 ModelWith(const std::vector<size_t>& numbers, const std::vector<int64_t>& samples) {
    std::vector<absl::string_view> views;
    for (const size_t number : numbers) views.emplace_back(messages_[number]);
    std::vector<float> mean(GridLayout().size()), weights = GridInitialWeights();
    EXPECT_EQ(AverageUpdates(crew_->fleet.codec(), views, AveragingWeights(samples), 1, absl::MakeSpan(mean)),
              absl::OkStatus());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += mean[i];
    return HashWeights(weights);
  }
  void SayBoth(const Update& bundle) {
    ASSERT_EQ(members_[0]->Say(bundle), absl::OkStatus());
    ASSERT_EQ(members_[1]->Say(Plain()), absl::OkStatus());
  }
  Outcome OutcomeOf(size_t member) { return members_[member]->All<Verdict>().at(0).outcome; }

  std::unique_ptr<Crew> crew_;
  std::vector<std::unique_ptr<ScriptedClient>> members_;
  std::vector<std::string> messages_;  // of the relay's three clients and of the plain one
};

TEST_F(EngineToldBundles, TheModelIsThatOfAFleetWithoutTheRelay) {
  Begin(RunOf(2));
  SayBoth(BundleOfThree());
  EXPECT_EQ(crew_->view().head.version, 1);
  EXPECT_EQ(crew_->view().head.model_hash, ModelWith({0, 1, 2, 3}, {}));
  EXPECT_EQ(OutcomeOf(0), Outcome::kApplied);
  EXPECT_EQ(OutcomeOf(1), Outcome::kApplied);
  // Clients allow for two forwarded updates in a message.
  EXPECT_TRUE(IsStepDownstream(crew_->fleet.store()->ReadLog(0, 1)->at(0).downstream));
}

TEST_F(EngineToldBundles, SamplesWeighAsTheyWouldWithoutTheRelay) {
  RunConfig config = RunOf(2);
  config.rounds.weighting = Weighting::kSamples;
  Begin(config);
  SayBoth(BundleOfThree());
  EXPECT_EQ(crew_->view().head.model_hash, ModelWith({0, 1, 2, 3}, {10, 20, 30, 40}));
}

// A relay that recompresses may be below one that forwards.
TEST_F(EngineToldBundles, AMeanInABundleCountsForItsClients) {
  Begin(RunOf(2));
  const std::vector<BundledUpdate> parts = {{messages_[0], {5, 10}}, {messages_[1], {1, 10}}};
  Update update = Bundle({messages_[0]}, {10});
  update.message = BuildBundle(parts).value();
  update.cohort = CohortOf(parts);
  update.update_id = MakeUpdateId((*crew_->fleet.store()->Run())->lineage, 1, 0, {}, update.message);
  SayBoth(update);
  EXPECT_EQ(crew_->view().head.model_hash, ModelWith({0, 1, 3}, {5, 1, 1}));
}

// Rules that compare updates see those of single clients.
TEST_F(EngineToldBundles, ARuleSeesEveryUpdate) {
  RunConfig config = RunOf(2);
  config.aggregation.rule = "median";
  config.downstream = DownstreamMode::kDense;
  Begin(config);
  SayBoth(BundleOfThree());
  const std::unique_ptr<const AggregationRule> rule = MakeAggregationRule(config.aggregation).value();
  const std::vector<absl::string_view> views(messages_.begin(), messages_.end());
  std::vector<float> step(GridLayout().size()), weights = GridInitialWeights();
  ASSERT_EQ(rule->Aggregate(crew_->fleet.codec(), views, {}, absl::MakeSpan(step)), absl::OkStatus());
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += step[i];
  EXPECT_EQ(crew_->view().head.model_hash, HashWeights(weights));
}

class PolicyOnBundles : public EngineToldBundles {
 protected:
  // No update may be as large as ten of the grid's.
  void SetUp() override {
    RunConfig config = RunOf(2);
    config.policy.norm_bound = 10 * NormOf(GridDelta(0, 1));
    Begin(config);
    std::vector<float> large = GridDelta(0, 1);
    for (float& value : large) value *= 1000;
    large_ = crew_->fleet.codec().Encode(large).value();
  }
  static double NormOf(const std::vector<float>& values) {
    double square = 0;
    for (const float value : values) square += static_cast<double>(value) * value;
    return std::sqrt(square);
  }

  std::string large_;
};

TEST_F(PolicyOnBundles, ARefusedUpdateIsLeftOut) {
  SayBoth(Bundle({messages_[0], large_, messages_[2]}, {1, 1, 1}));
  EXPECT_EQ(crew_->view().head.model_hash, ModelWith({0, 2, 3}, {}));
  EXPECT_EQ(OutcomeOf(0), Outcome::kApplied) << "the relay's other clients do not suffer for it";
  const std::vector<EventRecord> events = EventsOf(crew_->fleet, "update_rejected");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].client, 0);
  EXPECT_THAT(events[0].detail, HasSubstr("update 1 of those that it forwards"));
  EXPECT_EQ(crew_->Record(0).resets, 0);
}

TEST_F(PolicyOnBundles, ABundleOfWhichNothingIsLeftIsRefused) {
  SayBoth(Bundle({large_, large_}, {1, 1}));
  EXPECT_EQ(crew_->view().head.model_hash, ModelWith({3}, {}));
  EXPECT_EQ(OutcomeOf(0), Outcome::kReset);
  EXPECT_EQ(OutcomeOf(1), Outcome::kApplied);
  EXPECT_EQ(crew_->Record(0).resets, 1);
}

TEST_F(EngineToldBundles, ARunThatForwardsDownTakesNone) {
  RunConfig config = RunOf(2);
  config.downstream = DownstreamMode::kForward;
  Begin(config);
  ASSERT_EQ(members_[0]->Say(BundleOfThree()), absl::OkStatus());
  ASSERT_EQ(members_[0]->Count<Refusal>(), 1);
  EXPECT_THAT(members_[0]->All<Refusal>()[0].reason, HasSubstr("--mode recompress"));
}

TEST_F(EngineToldBundles, ABundleIsWhatItsHeaderSays) {
  Begin(RunOf(2));
  const Update good = BundleOfThree();
  for (const CohortFacts& cohort : {CohortFacts{4, 60}, CohortFacts{3, 61}}) {
    Update other = good;
    other.cohort = cohort;
    EXPECT_THAT(members_[0]->Say(other).message(),
                HasSubstr("a bundle of 3 clients with 60 samples, whose header says"));
  }
  Update cut = good;
  cut.message.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(members_[0]->Say(cut)));
  Update damaged = Bundle({messages_[0], messages_[1].substr(0, messages_[1].size() - 1)}, {1, 1});
  EXPECT_TRUE(absl::IsInvalidArgument(members_[0]->Say(damaged))) << "what is in it is looked at";
  Update alone = good;
  alone.cohort = {};
  EXPECT_TRUE(absl::IsInvalidArgument(members_[1]->Say(alone))) << "to who is no relay it is no update";
  EXPECT_EQ(crew_->view().head.version, 0);
  SayBoth(good);
  EXPECT_EQ(crew_->view().head.version, 1);
}

// Nothing depends on what a relay says of the tree below it.
TEST_F(EngineToldBundles, WhatARelaySaysOfItsTreeIsKept) {
  Begin(RunOf(2));
  Update update = BundleOfThree();
  update.below = BelowFacts{3, 100, 120, 200, 240};
  SayBoth(update);
  const std::vector<BelowRecord> below = crew_->fleet.store()->Below().value();
  ASSERT_EQ(below.size(), 1u);
  EXPECT_EQ(below[0].client, 0);
  EXPECT_EQ(below[0].facts.clients, 3);
  EXPECT_EQ(below[0].facts.wire_bytes_down, 240);
}

}  // namespace
}  // namespace terse
