// Fifty clients that lose their connections at once, again and again, and a coordinator that takes no connections.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

TEST(Storm, FiftyClientsReconnectAtOnce) {
  FleetShape shape;
  shape.clients = 50;
  NetworkFleet fleet(shape);
  fleet.StartClients();
  ASSERT_TRUE(fleet.Commits(2)) << fleet.Logs();
  for (int storm = 0; storm < 5; ++storm) {
    fleet.proxy().ResetAll();
    // All of them are needed for a round.
    ASSERT_TRUE(fleet.Commits(2)) << "after storm " << storm << "\n" << fleet.Logs();
  }
  fleet.FinishAndCheck();
}

TEST(Storm, ConnectionsAreNotTakenForAWhile) {
  FleetShape shape;
  NetworkFleet fleet(shape);
  fleet.StartClients();
  ASSERT_TRUE(fleet.Commits(5)) << fleet.Logs();
  fleet.proxy().SetAccepting(false);
  fleet.proxy().ResetAll();
  EXPECT_TRUE(WaitUntil([&] { return fleet.proxy().SomebodyKnocks(); }, kPatience)) << fleet.Logs();
  const int64_t rounds = fleet.Rounds();
  fleet.proxy().SetAccepting(true);
  EXPECT_TRUE(WaitUntil([&] { return fleet.Rounds() >= rounds + 5; }, kPatience)) << fleet.Logs();
  fleet.FinishAndCheck();
}

}  // namespace
}  // namespace terse
