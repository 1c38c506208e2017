// Updates as weapons: values, positions and rounds that no honest client would send (docs/ROBUSTNESS.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/attack/attacked_fleet.h"
#include "tests/testing/grid_trainer.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

// Rounds of all clients, which close without the last one at their deadline.
std::string RunFile(int clients, const std::string& codec = "", const std::string& tables = "") {
  return absl::StrCat(
      "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
      "density = 0.02\n",
      codec, "[rounds]\ncount = 1000000\nclients = ", clients, "\nquorum = ", clients - 1,
      "\ndeadline_seconds = 30\nevaluate_every = 1000000\n", tables);
}

// Takes work and answers with an update of these values until one is decided: a round may close before it comes.
Verdict SayUntilDecided(HostileSession* session, const std::vector<float>& values) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const auto work = session->Await<Assignment>();
    if (!work.has_value()) break;
    if (!session->Say(session->MakeUpdate(work->round, session->Encode(values)))) break;
    const auto verdict = session->Await<Verdict>();
    if (!verdict.has_value()) break;
    if (verdict->outcome != Outcome::kNotApplied) return *verdict;
  }
  ADD_FAILURE() << "no verdict: " << session->Refusal();
  return {};
}

void ExpectRefusedAndTheRunGoesOn(AttackedFleet& fleet, const Verdict& verdict, const std::string& reason) {
  EXPECT_EQ(verdict.outcome, Outcome::kReset);
  EXPECT_THAT(verdict.reason, HasSubstr(reason));
  EXPECT_EQ(fleet.CountEvents("update_rejected", "mallory"), 1);
  EXPECT_EQ(fleet.CountEvents("client_set_aside", "mallory"), 1);
  EXPECT_TRUE(fleet.WaitForMoreRounds(3));
  EXPECT_EQ(fleet.CountEvents("run_paused") + fleet.CountEvents("run_ended"), 0);
  EXPECT_EQ(fleet.Query("SELECT updates_applied FROM clients WHERE name = 'mallory'"), 0);
  EXPECT_EQ(fleet.Query("SELECT sum(failures) FROM clients WHERE name != 'mallory'"), 0);
}

constexpr char kTooLarge[] = "it has an element of ";

TEST(AttackUpdates, MeansOf3e38AreRefusedAndWhoIsSetAsideIsToldSo) {
  AttackedFleet fleet;
  fleet.Serve(RunFile(3));
  fleet.StartHonest(2);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join()) << session->Refusal();
  ExpectRefusedAndTheRunGoesOn(fleet, SayUntilDecided(session.get(), std::vector<float>(fleet.layout().size(), 3e38f)),
                               kTooLarge);

  // It is set aside, has no work, and sends for the open round all the same.
  std::string reason;
  const std::vector<float> honest(fleet.layout().size(), 0.25f);
  for (int attempt = 0; attempt < 20 && !absl::StrContains(reason, "set aside"); ++attempt) {
    const int64_t open = fleet.Query("SELECT max(id) FROM rounds");
    ASSERT_TRUE(session->Say(session->MakeUpdate(open, session->Encode(honest))));
    const auto verdict = session->Await<Verdict>();
    ASSERT_TRUE(verdict.has_value()) << session->Refusal();
    ASSERT_EQ(verdict->outcome, Outcome::kNotApplied);
    reason = verdict->reason;
  }
  EXPECT_THAT(reason, HasSubstr("the client is set aside (its update was refused: "));
  EXPECT_EQ(fleet.Query("SELECT updates_applied FROM clients WHERE name = 'mallory'"), 0);
}

// Sends the change that an honest client would, the other way and ten times as large. The updates are whole, because
// honest norms of sparse ones grow with the residuals.
TEST(AttackUpdates, AFlippedSignTenTimesAsLargeIsRefused) {
  AttackedFleet fleet;
  fleet.Serve(
      absl::StrReplaceAll(RunFile(4, "downstream = 'dense'\n"), {{"name = 'sbc'\ndensity = 0.02", "name = 'dense'"}}));
  fleet.StartHonest(3);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join()) << session->Refusal();
  std::vector<float> flipped = GridDelta(3, 0, fleet.layout());
  for (float& value : flipped) value *= -10;
  ExpectRefusedAndTheRunGoesOn(fleet, SayUntilDecided(session.get(), flipped), "times the median of ");
}

class AttackVotes : public ::testing::TestWithParam<std::string> {};

TEST_P(AttackVotes, ALoneVoteOf3e38IsRefusedAndTheRunGoesOn) {
  AttackedFleet fleet;
  fleet.Serve(RunFile(5, "downstream = 'dense'\n", absl::StrCat("[aggregation]\nrule = '", GetParam(), "'\n")));
  fleet.StartHonest(4);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join()) << session->Refusal();
  std::vector<float> lone(fleet.layout().size(), 0.0f);
  lone[5] = 3e38f;
  ExpectRefusedAndTheRunGoesOn(fleet, SayUntilDecided(session.get(), lone), kTooLarge);
}

INSTANTIATE_TEST_SUITE_P(Rules, AttackVotes, ::testing::Values("median", "trimmed_mean"),
                         [](const auto& info) { return info.param; });

// One of two is drawn for every round, and both send for it.
TEST(AttackUpdates, WhoWasNotInvitedDoesNotCount) {
  AttackedFleet fleet;
  fleet.Serve(
      "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'sbc'\n"
      "density = 0.02\n[rounds]\ncount = 1000000\nclients = 2\nevaluate_every = 1000000\nselection = 'random'\n"
      "fraction = 0.5\n");
  const std::array<std::unique_ptr<HostileClient>, 2> clients = {fleet.Hostile("eve"), fleet.Hostile("mallory")};
  std::array<std::unique_ptr<HostileSession>, 2> sessions;
  for (int i : {0, 1}) {
    sessions[i] = clients[i]->Open();
    ASSERT_TRUE(sessions[i]->Join()) << sessions[i]->Refusal();
  }
  const std::vector<float> values(fleet.layout().size(), 0.25f);
  int64_t applied = 0;
  bool turned_away = false;
  ASSERT_TRUE(WaitUntil([&] { return fleet.Query("SELECT count(*) FROM rounds") > 0; }, kAttackPatience));
  for (int attempt = 0; attempt < 40 && !turned_away; ++attempt) {
    HostileSession& session = *sessions[attempt % 2];
    const int64_t open = fleet.Query("SELECT max(id) FROM rounds");
    ASSERT_TRUE(session.Say(session.MakeUpdate(open, session.Encode(values))));
    const auto verdict = session.Await<Verdict>();
    ASSERT_TRUE(verdict.has_value()) << session.Refusal();
    applied += verdict->outcome == Outcome::kApplied ? 1 : 0;
    turned_away = absl::StrContains(verdict->reason, absl::StrCat("was not given the work of round ", open));
  }
  EXPECT_TRUE(turned_away);
  EXPECT_EQ(fleet.Query("SELECT sum(updates_applied) FROM clients"), applied);
  EXPECT_EQ(fleet.CountEvents("update_turned_away"), 1);
}

}  // namespace
}  // namespace terse
