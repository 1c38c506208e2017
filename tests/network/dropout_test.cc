// 30% of the cohort is missing in every round: stopped processes and killed ones, others every time.
#include <algorithm>
#include <csignal>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/network/network_fleet.h"

namespace terse {
namespace {

constexpr int kClients = 10;
constexpr int kMissing = 3;
constexpr int kTurns = 12;

// Chooses the clients that are missing in a turn: one third of a shuffled fleet after the other, so that nobody is
// missing twice in a row.
class Victims {
 public:
  std::vector<int> Next() {
    if (order_.size() < kMissing) {
      std::vector<int> all(kClients);
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), random_);
      order_.insert(order_.begin(), all.begin(), all.end());
    }
    const std::vector<int> next(order_.end() - kMissing, order_.end());
    order_.resize(order_.size() - kMissing);
    return next;
  }
  bool Coin() { return random_() % 2 == 0; }

 private:
  std::mt19937 random_{30};
  std::vector<int> order_;
};

TEST(Dropout, RoundsCommitWithAThirdMissing) {
  FleetShape shape;
  shape.clients = kClients;
  shape.quorum = 5;
  shape.deadline_seconds = 0.3;
  NetworkFleet fleet(shape);
  fleet.StartClients();
  ASSERT_TRUE(WaitUntil([&] { return fleet.ClientsThatSaid("joined run") == kClients; }, kPatience)) << fleet.Logs();
  Victims victims;
  int kills = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::vector<int> missing = victims.Next();
    std::vector<int> stopped;
    std::vector<int> killed;
    for (int client : missing) (victims.Coin() ? stopped : killed).push_back(client);
    for (int client : stopped) fleet.processes().client(client).Signal(SIGSTOP);
    for (int client : killed) fleet.processes().client(client).Kill();
    kills += killed.size();
    const int64_t first = QueryNumber(fleet.processes().database(), "SELECT max(id) FROM rounds") + 1;
    EXPECT_TRUE(fleet.Commits(3)) << "turn " << turn << "\n" << fleet.Logs();
    // The round that was open when they went may hold updates of theirs, no later one does.
    const std::string since = absl::StrCat("FROM rounds WHERE state = 'committed' AND id >= ", first);
    EXPECT_GE(QueryNumber(fleet.processes().database(), absl::StrCat("SELECT count(*) ", since)), 2);
    EXPECT_LE(QueryNumber(fleet.processes().database(), absl::StrCat("SELECT max(updates) ", since)),
              kClients - kMissing);
    EXPECT_GE(QueryNumber(fleet.processes().database(), absl::StrCat("SELECT min(updates) ", since)), shape.quorum);
    for (int client : stopped) fleet.processes().client(client).Signal(SIGCONT);
    for (int client : killed) fleet.StartClient(client);
  }
  EXPECT_TRUE(fleet.Commits(2)) << fleet.Logs();
  fleet.FinishAndCheck(absl::StrCat(kTurns, " turns, ", kills, " kills"));
}

}  // namespace
}  // namespace terse
