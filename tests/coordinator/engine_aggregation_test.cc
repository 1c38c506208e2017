// Whole fleets whose rounds are aggregated by other rules than the mean.
#include <string>
#include <tuple>

#include "compression/codec_table.h"
#include "coordinator/aggregation/aggregation_table.h"
#include "coordinator/server_step.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRounds = 9, kClients = 7;

RunConfig RobustRun(const std::string& rule, const std::string& downstream) {
  RunConfig config = GridRunConfig(kClients, kRounds);
  config.aggregation.rule = rule;
  config.downstream = downstream == "dense"  ? DownstreamMode::kDense
                      : downstream == "auto" ? DownstreamMode::kAuto
                                             : DownstreamMode::kCoded;
  config.downstream_codec.name = "stc";
  config.downstream_codec.density = 0.05;
  config.downstream_codec.feedback = "error_feedback";
  return config;
}

class EngineAggregation : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

// Restarts repeat the rule's steps bit for bit, and the books of every client balance: what a rule made no use of was
// applied all the same.
TEST_P(EngineAggregation, RunsToTheEndOverRestarts) {
  FleetSimulation fleet(RobustRun(std::get<0>(GetParam()), std::get<1>(GetParam())), kClients);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t kill = 0; kill < 3; ++kill) {
    for (int64_t step = 0; step < 71 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    fleet.KillCoordinator();
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus()) << kill;
    fleet.ConnectAll();
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, kRounds);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  EXPECT_EQ(CheckServerSteps(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(fleet.store()->GetClient(i)->resets, 0) << i;
    if (std::get<1>(GetParam()) != "stc") continue;  // only a server with a state keeps what was applied
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, EngineAggregation,
                         ::testing::Combine(::testing::ValuesIn(AggregationRuleNames()),
                                            ::testing::Values("dense", "auto", "stc")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

// The model is what the rule makes of the updates, and not their average.
TEST(AggregatedModel, TheModelTakesTheRulesStep) {
  for (const char* downstream : {"dense", "auto"}) {
    RunConfig config = RobustRun("median", downstream);
    config.rounds.count = 1;
    FleetSimulation fleet(config, kClients);
    ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    std::vector<std::string> messages;
    for (int64_t i = 0; i < kClients; ++i) messages.push_back(*fleet.codec().Encode(GridDelta(i, 0)));
    const std::vector<absl::string_view> views(messages.begin(), messages.end());
    std::vector<float> step(GridLayout().size()), weights = GridInitialWeights();
    ASSERT_EQ((*MakeAggregationRule(config.aggregation))->Aggregate(fleet.codec(), views, {}, absl::MakeSpan(step)),
              absl::OkStatus());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += step[i];
    EXPECT_EQ(fleet.engine()->View().head.model_hash, HashWeights(weights)) << downstream;
  }
}

TEST(AggregatedModel, WhatNoDownstreamCouldTell) {
  const RunConfig grid = RobustRun("median", "dense");
  FleetSimulation fleet(grid, 0);
  RunConfig forward = grid;
  forward.downstream = DownstreamMode::kForward;
  EXPECT_THAT(std::string(ServerStep::Make(forward, fleet.downstream_codecs()).status().message()),
              HasSubstr("needs a downstream other than forward"));
}

TEST(AggregatedModel, BuffersAreNotVotedOn) {
  const Layout layout = *Layout::Create({{"a", {3}}, {"running_mean", {2}, TensorKind::kBuffer}});
  CodecSpec spec;
  spec.name = "dense";
  const auto codec = *MakeCodec(spec, layout);
  RunConfig config = RobustRun("majority_vote", "dense");
  EXPECT_THAT(std::string(ServerStep::Make(config, DownstreamCodecs(*codec)).status().message()),
              HasSubstr("set model.buffers = 'local'"));
  config.aggregation.rule = "median";
  EXPECT_TRUE(ServerStep::Make(config, DownstreamCodecs(*codec)).ok());
}

TEST(AggregatedModel, ImputesNothingThatClientsForget) {
  const Layout layout = *Layout::Create({{"a", {2}}});
  const auto refusal = [&layout](const std::string& name) {
    CodecSpec spec;
    spec.name = name;
    const auto codec = *MakeCodec(spec, layout);
    RunConfig config = RobustRun("imputed_mean", "dense");
    config.codec = spec;
    return std::string(ServerStep::Make(config, DownstreamCodecs(*codec)).status().message());
  };
  EXPECT_THAT(refusal("qsgd"), HasSubstr("codec.name = 'qsgd' and codec.feedback = 'own' they forget it"));
  EXPECT_EQ(refusal("sbc"), "");
  EXPECT_EQ(refusal("dense"), "");
}

}  // namespace
}  // namespace terse
