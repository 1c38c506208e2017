// A client that was away for 200 rounds comes back: it gets the log of what it missed, on the wire fewer bytes than a
// checkpoint has, and holds the fleet's model again.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

constexpr int64_t kAway = 200;

int64_t UpdatesOf(NetworkFleet& fleet, int client) {
  return QueryNumber(fleet.processes().database(),
                     absl::StrCat("SELECT updates_applied FROM clients WHERE name = 'client-", client, "'"));
}

TEST(Away, TwoHundredMissedRoundsCostLessThanACheckpoint) {
  FleetShape shape;
  shape.clients = 2;
  shape.quorum = 1;
  // A round waits for who is away until its deadline, and for the quorum as long as it takes.
  shape.deadline_seconds = 0.01;
  shape.grace_seconds = 60;
  shape.codec = {"sbc", 0.001, "bf16"};
  shape.wide = true;
  NetworkFleet fleet(shape);
  fleet.StartClients();
  ASSERT_TRUE(WaitUntil([&] { return UpdatesOf(fleet, 1) > 0; }, kPatience)) << fleet.Logs();
  fleet.StopClient(1);
  const int64_t before = UpdatesOf(fleet, 1), left_at = fleet.Rounds();
  ASSERT_TRUE(fleet.Commits(kAway)) << fleet.Logs();
  const size_t connections = fleet.proxy().Counts().size(), said = fleet.processes().client(1).Output().size();
  const int64_t back_at = fleet.Rounds();
  fleet.StartClient(1);
  // An update of its own shows that it has the model to train from.
  ASSERT_TRUE(WaitUntil([&] { return UpdatesOf(fleet, 1) > before; }, kPatience)) << fleet.Logs();
  const int64_t bytes = fleet.proxy().Counts().at(connections).down;
  const auto checkpoint_bytes = static_cast<int64_t>(WideGridLayout().size() * sizeof(float));
  EXPECT_LT(bytes, checkpoint_bytes);
  EXPECT_THAT(fleet.processes().client(1).Output().substr(said),
              testing::Not(testing::HasSubstr("downloading checkpoint")));
  fleet.FinishAndCheck(absl::StrCat(back_at - left_at, " rounds away, back by ", bytes,
                                    " bytes on the wire; a checkpoint has ", checkpoint_bytes));
}

}  // namespace
}  // namespace terse
