// Rounds of the engine with a whole fleet: aggregation, quorum, deadlines, stop, ledger.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fleet_simulation.h"

namespace terse {
namespace {

TEST(EngineRounds, RunsToTheEndAndConserves) {
  FleetSimulation fleet(GridRunConfig(3, 6), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  const EngineView view = fleet.engine()->View();
  EXPECT_EQ(view.head.version, 6);
  EXPECT_TRUE(view.ended);
  EXPECT_EQ((*fleet.store()->Run())->state, RunState::kFinished);
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.codec(), GridInitialWeights()), absl::OkStatus());
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fleet.last_result(i), absl::OkStatus());
    EXPECT_EQ(fleet.state(i)->state().generation, 6);
    EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, fleet.state(i)->state(), {}), absl::OkStatus());
  }
}

}  // namespace
}  // namespace terse
