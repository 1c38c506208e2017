// Whole rounds with every codec and its own feedback: the engine and the session know nothing of either.
#include "compression/codec_table.h"
#include "compression/feedback_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

// A client dies after some deliveries, wherever that finds it, and comes back; the coordinator too.
void RunWithDeaths(const CodecSpec& codec) {
  RunConfig config = GridRunConfig(3, 5);
  config.codec = codec;
  FleetSimulation fleet(config, 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t steps : {9, 16, 11}) {
    for (int64_t step = 0; step < steps; ++step) ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    fleet.KillClient(steps % 3);
    ASSERT_EQ(fleet.StartClient(steps % 3), absl::OkStatus());
    fleet.Connect(steps % 3);
  }
  fleet.KillCoordinator();
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  for (int64_t i = 0; i < 3; ++i) {
    if (fleet.connected(i)) continue;
    fleet.Connect(i);
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 5);
  EXPECT_EQ((*fleet.store()->Run())->state, RunState::kFinished);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.last_result(i), absl::OkStatus()) << i;
  }
}

class EngineCodecs : public ::testing::TestWithParam<std::string> {};

TEST_P(EngineCodecs, RunsToTheEndThroughDeaths) {
  CodecSpec codec;
  codec.name = GetParam();
  codec.density = 0.1;
  RunWithDeaths(codec);
}

INSTANTIATE_TEST_SUITE_P(Table, EngineCodecs, ::testing::ValuesIn(CodecNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) { return info.param; });

TEST(EngineCodecs, RunWithEveryFeedbackGroupingAndSchedule) {
  for (const std::string& feedback : FeedbackNames()) {
    CodecSpec codec;
    codec.density = 0.1;
    codec.feedback = feedback;
    RunWithDeaths(codec);
  }
  CodecSpec dgc;
  dgc.name = "dgc";
  dgc.warmup_rounds = 4;
  dgc.grouping = "merge_small";
  RunWithDeaths(dgc);
  CodecSpec mcgq;
  mcgq.name = "mcgq";
  mcgq.sampling_step = 0.01;
  mcgq.grouping = "global";
  RunWithDeaths(mcgq);
}

}  // namespace
}  // namespace terse
