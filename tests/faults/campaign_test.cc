// The kill campaign can fail: processes with a known error of the protocol are found out. That the campaign passes
// without one is ctest's `kill_campaign`.
#include "tests/faults/campaign.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"
#include "tests/testing/temp_directory.h"

namespace terse {
namespace {

// Seeds of trees whose clients move.
constexpr uint64_t kMoves = 1;
constexpr uint64_t kMovesAndRelaysForward = 5;

// Fleets whose processes have this error, until one of them loses or doubles an update; at most so many.
FleetResult FirstCaught(const std::string& mutant, Topology topology, int most_fleets, uint64_t first_seed = 0) {
  FleetResult result;
  for (int fleet = 0; fleet < most_fleets; ++fleet) {
    const TempDirectory directory;
    FleetOptions options;
    options.bin = InBuild("bin");
    options.mutant = mutant;
    options.topology = topology;
    options.directory = directory.path();
    options.address = UniqueAddress(fleet);
    options.seed = first_seed + fleet;
    result = RunFleet(options, [] { return false; });
    if (result.lost + result.doubled > 0) break;
  }
  return result;
}

TEST(KillCampaign, CountsUpdatesThatAreLostWhenAReceiptSettlesThem) {
  const FleetResult result = FirstCaught("settle_on_receipt", Topology::kFlat, 6);
  EXPECT_GT(result.lost, 0) << absl::StrJoin(result.problems, "\n");
  EXPECT_EQ(result.doubled, 0) << absl::StrJoin(result.problems, "\n");
}

TEST(KillCampaign, CountsUpdatesThatAreDoubledWithoutDeduplication) {
  const FleetResult result = FirstCaught("no_dedupe", Topology::kFlat, 6);
  EXPECT_GT(result.doubled, 0) << absl::StrJoin(result.problems, "\n");
}

TEST(KillCampaign, CountsUpdatesThatAreLostWhenARelaySettlesThemBeforeItsOwnIsSealed) {
  const FleetResult result = FirstCaught("relay_settles_first", Topology::kTree, 3, kMoves);
  EXPECT_GT(result.lost + result.doubled, 0) << absl::StrJoin(result.problems, "\n");
}

TEST(KillCampaign, CountsUpdatesThatAClientKeepsAndPartsWithWhenItMoves) {
  const FleetResult result = FirstCaught("move_counts_twice", Topology::kTree, 3, kMoves);
  EXPECT_GT(result.lost + result.doubled, 0) << absl::StrJoin(result.problems, "\n");
}

TEST(KillCampaign, CountsTheSameWhereRelaysForward) {
  for (const char* const mutant : {"relay_settles_first", "move_counts_twice"}) {
    const FleetResult result = FirstCaught(mutant, Topology::kTree, 1, kMovesAndRelaysForward);
    EXPECT_NE(result.settings.find("forward"), std::string::npos) << result.settings;
    EXPECT_GT(result.lost + result.doubled, 0) << mutant << ": " << absl::StrJoin(result.problems, "\n");
  }
}

}  // namespace
}  // namespace terse
