// Relays between a coordinator and its clients, with every kind of process killed in the middle of it: no update is lost
// and none counts twice in the whole tree.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "core/random.h"
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
