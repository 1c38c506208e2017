// Relays between a coordinator and its clients, with every kind of process killed in the middle of it: no update is
// lost and none counts twice in the whole tree.
#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/relay_tree.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

TEST(RelayTest, TheBooksOfATreeBalance) {
  RelayTree tree({});
  tree.Start();
  tree.Finish(absl::Seconds(120));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

// A relay is gone for long: its clients go on with another one, and come back when that one is gone too. What they
// sealed for the first one and heard nothing of counts once, wherever it is.
TEST(RelayTest, ClientsMoveBetweenRelays) {
  RelayTree::Shape shape;
  shape.rounds = 60;
  shape.moves = true;
  RelayTree tree(shape);
  tree.Start();
  for (const int gone : {1, 0}) {
    ASSERT_TRUE(tree.WaitForRounds(20 * (2 - gone), absl::Seconds(60))) << "at " << tree.Version() << tree.Outputs();
    if (gone == 0) tree.StartRelay(1);
    tree.relay(gone).Kill();
  }
  ASSERT_TRUE(tree.WaitForRounds(shape.rounds, absl::Seconds(60))) << "at " << tree.Version() << tree.Outputs();
  // It hears what became of its own update, and so of its clients'.
  tree.StartRelay(0);
  ASSERT_TRUE(
      WaitUntil([&] { return absl::StrContains(tree.relay(0).Output(), "the run is over"); }, absl::Seconds(30)));
  tree.Finish(absl::Seconds(120));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

// Kills processes anywhere in the tree while its run goes on, and closes the books.
void KillAnywhere(const RelayTree::Shape& shape, uint64_t seed) {
  constexpr int kKills = 20;
  RelayTree tree(shape);
  tree.Start();
  Random random(seed, /*stream=*/0);
  for (int kill = 1; kill <= kKills; ++kill) {
    ASSERT_TRUE(tree.WaitForRounds(kill * shape.rounds / (kKills + 2), absl::Seconds(60)))
        << "at " << tree.Version() << " after " << kill - 1 << " kills\n"
        << tree.Outputs();
    const auto which = static_cast<int>(random.Below(static_cast<uint64_t>(tree.processes())));
    tree.KillAndRestart(which, absl::Milliseconds(static_cast<int64_t>(random.Below(100))));
  }
  tree.Finish(absl::Seconds(120));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

TEST(RelayTest, KillsAnywhereLoseNothingAndDoubleNothing) {
  RelayTree::Shape shape;
  shape.rounds = 200;
  KillAnywhere(shape, /*seed=*/7);
}

TEST(RelayTest, RelaysThatForwardLoseNothingAndDoubleNothing) {
  RelayTree::Shape shape;
  shape.rounds = 200;
  shape.forwards = true;
  KillAnywhere(shape, /*seed=*/11);
}

// A round of the coordinator's that is given up with a bundle in it.
TEST(RelayTest, ABundleThatIsNotAppliedIsSentAgain) {
  RelayTree::Shape shape;
  shape.rounds = 60;
  shape.forwards = true;
  RelayTree tree(shape);
  tree.Start();
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(tree.WaitForRounds(15 * round, absl::Seconds(60))) << "at " << tree.Version() << tree.Outputs();
    // The round waits for this relay, so that the other one's bundle is there when the round is given up.
    tree.relay(1).Signal(SIGSTOP);
    absl::SleepFor(absl::Milliseconds(500));
    Process abort({Program("tersectl"), "--admin", absl::StrCat("unix:", tree.root_state(), "/admin.sock"), "abort"},
                  absl::StrCat(tree.root_state(), "-abort-", round, ".log"));
    EXPECT_EQ(abort.Wait(absl::Seconds(20)), absl::optional<int>(0)) << abort.Output();
    // It dies with the bundle in its state, at times, and knows of it afterwards.
    if (round == 2) tree.KillAndRestart(1, absl::ZeroDuration());
    tree.relay(1).Signal(SIGCONT);
  }
  tree.Finish(absl::Seconds(120));
  EXPECT_THAT(tree.relay(0).Output(), HasSubstr("and is sent again for the next one"));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

// The coordinator shows what is below its relays.
TEST(RelayTest, TheTreeIsShownAtItsRoot) {
  RelayTree tree({});
  tree.Start();
  tree.Finish(absl::Seconds(120));
  const std::string root = RelayTree::RunOf(tree.root_state()) + "/run.sqlite";
  EXPECT_EQ(QueryNumber(root, "SELECT sum(clients) FROM below"), 4);
  for (int relay = 0; relay < 2; ++relay) {
    const std::string below = RelayTree::RunOf(tree.relay_state(relay)) + "/run.sqlite";
    // Said with the newest update, before that one's own round was booked.
    const int64_t said = QueryNumber(root, absl::StrCat("SELECT payload_up FROM below WHERE client = (SELECT id FROM "
                                                        "clients WHERE name = 'relay-",
                                                        relay, "')"));
    const int64_t booked = QueryNumber(below, "SELECT sum(payload_up) FROM round_totals");
    EXPECT_GT(said, booked / 2);
    EXPECT_LE(said, booked);
  }
}

}  // namespace
}  // namespace terse
