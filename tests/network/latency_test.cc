// Ten seconds each way: further than the Moon, and rounds commit.
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

TEST(Latency, TenSecondsEachWay) {
  FleetShape shape;
  shape.clients = 2;
  NetworkFleet fleet(shape, [](int) {
    LinkScript script;
    script.up.latency = script.down.latency = absl::Seconds(10);
    return script;
  });
  fleet.StartClients();
  // Connecting, checking in, the checkpoint and the work take four round trips of 20 s; then a round takes one.
  ASSERT_TRUE(WaitUntil([&] { return fleet.Rounds() >= 2; }, absl::Seconds(300))) << fleet.Logs();
  EXPECT_EQ(fleet.proxy().Counts().size(), shape.clients) << "a connection was given up\n" << fleet.Logs();
  fleet.FinishAndCheck();
}

}  // namespace
}  // namespace terse
