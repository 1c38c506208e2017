// Sessions as weapons: a client with a good certificate that opens, holds, floods or starves them (docs/THREATS.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/attack/attacked_fleet.h"

namespace terse {
namespace {

// A fleet of two honest clients and one hostile one, whose rounds close without the slowest.
constexpr char kRun[] =
    "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
    "density = 0.02\n[rounds]\ncount = 1000000\nclients = 3\nevaluate_every = 1000000\nselection = 'random'\n"
    "fraction = 0.6\nover_selection = 0.5\n";

TEST(AttackSessions, AnIdleHostileSessionStopsNobody) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  fleet.StartHonest(2);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join()) << session->Refusal();
  EXPECT_EQ(session->welcome().config->name, "attacked");
  EXPECT_TRUE(fleet.WaitForMoreRounds(5));
  EXPECT_TRUE(session->Await<Assignment>().has_value());
  EXPECT_EQ(fleet.CountEvents("client_joined", "mallory"), 1);
}

}  // namespace
}  // namespace terse
