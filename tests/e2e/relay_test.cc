// Relays between a coordinator and its clients, with every kind of process killed in the middle of it: no update is
// lost and none counts twice in the whole tree.
#include <memory>
#include <string>

#include "core/random.h"
#include "gtest/gtest.h"
#include "tests/e2e/relay_tree.h"

namespace terse {
namespace {

TEST(RelayTest, TheBooksOfATreeBalance) {
  RelayTree tree({});
  tree.Start();
  tree.Finish(absl::Seconds(120));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Resets(), 0);
}

// A relay is gone for long: its clients go on with another one, and back when that one is gone. What they sealed for
// the first one and heard nothing of counts once, wherever it is.
TEST(RelayTest, ClientsMoveBetweenRelays) {
  RelayTree::Shape shape;
  shape.rounds = 300;
  shape.moves = true;
  RelayTree tree(shape);
  tree.Start();
  for (int move = 1; move <= 4; ++move) {
    ASSERT_TRUE(tree.WaitForRounds(move * 60 - 30, absl::Seconds(60))) << "at " << tree.Version() << tree.Outputs();
    const int gone = move % 2;
    tree.relay(gone).Kill();
    ASSERT_TRUE(tree.WaitForRounds(move * 60, absl::Seconds(60))) << "at " << tree.Version() << tree.Outputs();
    tree.StartRelay(gone);
  }
  tree.Finish(absl::Seconds(120));
  tree.ExpectBooksBalance();
  EXPECT_EQ(tree.Doubles(), 0);
  EXPECT_EQ(tree.Resets(), 0);
}

TEST(RelayTest, KillsAnywhereLoseNothingAndDoubleNothing) {
  constexpr int kKills = 30;
  RelayTree::Shape shape;
  shape.rounds = 300;
  RelayTree tree(shape);
  tree.Start();
  Random random(/*seed=*/7, /*stream=*/0);
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

}  // namespace
}  // namespace terse
