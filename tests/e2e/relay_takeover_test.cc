// Two processes for one relay on one PostgreSQL store: whichever serves is killed, or paused and woken up again. The
// other one goes on with its state, and no update is lost or counts twice in the whole tree.
#include <csignal>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "core/random.h"
#include "gtest/gtest.h"
#include "storage/postgres_db.h"
#include "tests/e2e/health.h"
#include "tests/e2e/relay_tree.h"
#include "tests/testing/postgres_server.h"

namespace terse {
namespace {

// Every row of every table in the schemas of the relay, in one text.
std::string DumpOf(const std::string& store) {
  const auto db = PostgresDb::Open(store, "public", PostgresDb::Mode::kLease).value();
  Statement dump = db->Prepare(
      "SELECT CAST(string_agg(CAST(query_to_xml(format('SELECT * FROM %I.%I t ORDER BY t', table_schema, table_name), "
      "true, true, '') AS TEXT), '' ORDER BY table_schema, table_name) AS TEXT) FROM information_schema.tables WHERE "
      "table_schema IN ('terse-relay', 'terse_tree')");
  EXPECT_TRUE(dump.Step().value());
  return std::string(dump.GetText(0));
}

class RelayTakeover : public ::testing::Test {
 protected:
  static constexpr int kRounds = 160;

  static RelayTree::Shape ShapeOn(const std::string& store) {
    RelayTree::Shape shape;
    shape.relays = 1;
    shape.rounds = kRounds;
    shape.store = store;
    return shape;
  }
  void AwaitRounds(int64_t rounds) {
    ASSERT_TRUE(tree_.WaitForRounds(rounds, kPatience)) << "at " << tree_.Version() << "\n" << tree_.Outputs();
  }
  // The process that serves.
  int Holder() {
    int holder = -1;
    EXPECT_TRUE(WaitUntil([&] { return (holder = tree_.Serving()) >= 0; }, kPatience)) << tree_.Outputs();
    return holder;
  }
  // Waits until the other one has taken the relay over, and a round was committed with it.
  void AwaitTakeoverFrom(int holder) {
    ASSERT_TRUE(WaitUntil([&] { return tree_.Serving() == 1 - holder; }, kPatience)) << tree_.Outputs();
    AwaitRounds(tree_.Version() + 2);
  }
  // A process that was paused and is woken up, or was too late, ends; it is started again, as its service manager does.
  void ExpectEndOf(int process) {
    tree_.relay(0, process).Signal(SIGCONT);
    EXPECT_EQ(tree_.relay(0, process).Wait(kPatience), absl::optional<int>(1)) << tree_.Outputs();
    const std::string said = tree_.relay(0, process).Output();
    EXPECT_TRUE(absl::StrContains(said, "another process took the lease") || absl::StrContains(said, "was taken over"))
        << said;
    tree_.StartRelay(0, process);
  }
  void ExpectWholeBooks() {
    tree_.Finish(kPatience);
    tree_.ExpectBooksBalance();
    EXPECT_EQ(tree_.Resets(), 0);
  }

  PostgresServer server_;
  RelayTree tree_{ShapeOn(server_.address())};
};

TEST_F(RelayTakeover, KillsOfWhoeverServesLoseNothingAndDoubleNothing) {
  constexpr int kKills = 8;
  tree_.Start();
  for (int kill = 1; kill <= kKills; ++kill) {
    ASSERT_NO_FATAL_FAILURE(AwaitRounds(kill * kRounds / (kKills + 2)));
    const int holder = Holder();
    // At other moments of a round each time.
    absl::SleepFor(absl::Milliseconds(7 * kill));
    tree_.relay(0, holder).Kill();
    ASSERT_NO_FATAL_FAILURE(AwaitTakeoverFrom(holder));
    tree_.StartRelay(0, holder);
  }
  ExpectWholeBooks();
}

TEST_F(RelayTakeover, KillsAnywhereLoseNothingAndDoubleNothing) {
  constexpr int kKills = 16;
  Random random(/*seed=*/11, /*stream=*/0);
  tree_.Start();
  for (int kill = 1; kill <= kKills; ++kill) {
    ASSERT_NO_FATAL_FAILURE(AwaitRounds(kill * kRounds / (kKills + 2)));
    const auto which = static_cast<int>(random.Below(static_cast<uint64_t>(tree_.processes())));
    tree_.KillAndRestart(which, absl::Milliseconds(static_cast<int64_t>(random.Below(100))));
  }
  ExpectWholeBooks();
}

TEST_F(RelayTakeover, OneThatWakesUpChangesNothing) {
  tree_.Start();
  ASSERT_NO_FATAL_FAILURE(AwaitRounds(kRounds / 8));
  // In a tree that goes on.
  int holder = Holder();
  tree_.relay(0, holder).Signal(SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(AwaitTakeoverFrom(holder));
  ExpectEndOf(holder);
  // In one that stands still, where every change would be its.
  ASSERT_NO_FATAL_FAILURE(AwaitRounds(kRounds / 4));
  holder = Holder();
  tree_.relay(0, holder).Signal(SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(AwaitTakeoverFrom(holder));
  tree_.root().Signal(SIGSTOP);
  std::string before;
  ASSERT_TRUE(WaitUntil(
      [&] {
        before = DumpOf(server_.address());
        absl::SleepFor(absl::Seconds(1));
        return DumpOf(server_.address()) == before;
      },
      kPatience));
  ExpectEndOf(holder);
  EXPECT_TRUE(DumpOf(server_.address()) == before);
  tree_.root().Signal(SIGCONT);
  ExpectWholeBooks();
}

TEST_F(RelayTakeover, AServerThatIsGoneForAWhileIsWaitedFor) {
  tree_.Start();
  // Shorter and longer than the lease.
  for (const absl::Duration outage : {absl::Milliseconds(200), absl::Seconds(4)}) {
    ASSERT_NO_FATAL_FAILURE(AwaitRounds(tree_.Version() + kRounds / 8));
    server_.Crash();
    absl::SleepFor(outage);
    server_.Start();
    ASSERT_NO_FATAL_FAILURE(AwaitRounds(tree_.Version() + kRounds / 8));
    // Which of the two has the lease now is open. It may have lasted too long, which is in order.
    for (const int process : {0, 1}) {
      if (tree_.relay(0, process).Wait(absl::ZeroDuration()).has_value()) ExpectEndOf(process);
    }
  }
  ExpectWholeBooks();
}

TEST_F(RelayTakeover, OneThatStandsBySaysSoAndKeepsOutOfTheRun) {
  tree_.Start();
  ASSERT_NO_FATAL_FAILURE(AwaitRounds(kRounds / 8));
  const int standby = 1 - Holder();
  EXPECT_TRUE(absl::StrContains(tree_.relay(0, standby).Output(), "standing by: ")) << tree_.Outputs();
  EXPECT_FALSE(absl::StrContains(tree_.relay(0, standby).Output(), "joined")) << tree_.Outputs();
  EXPECT_EQ(HealthOf(tree_.relay_address(0, standby), ""), Health::kNotServing);
  EXPECT_EQ(HealthOf(tree_.relay_address(0, 1 - standby), ""), Health::kServing);
  // One that ends in order gives the relay up at once.
  tree_.relay(0, 1 - standby).Signal(SIGTERM);
  ASSERT_NO_FATAL_FAILURE(AwaitTakeoverFrom(1 - standby));
  EXPECT_EQ(tree_.relay(0, 1 - standby).Wait(kPatience), absl::optional<int>(0)) << tree_.Outputs();
  tree_.StartRelay(0, 1 - standby);
  ExpectWholeBooks();
}

}  // namespace
}  // namespace terse
