// Sessions as weapons: a client with a good certificate that opens, holds, floods or starves them (docs/THREATS.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/attack/attacked_fleet.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

// A run whose downstream log has 600 KB a round.
constexpr char kWideRun[] =
    "name = 'attacked'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\nname = 'dense'\n"
    "downstream = 'forward'\n"
    "[rounds]\ncount = 1000000\nclients = 3\nevaluate_every = 1000000\nselection = 'random'\nfraction = 0.6\n"
    "over_selection = 0.5\n[checkpoints]\nevery = 1000000\n";

TEST(AttackSessions, SessionsThatStopReadingHoldNoMemory) {
  AttackedFleet fleet(/*wide=*/true);
  fleet.Serve(kWideRun, {"--sessions-at-once", "16"});
  fleet.StartHonest(2);
  const auto mallory = fleet.Hostile("mallory");
  std::vector<std::unique_ptr<HostileSession>> sessions;
  sessions.push_back(mallory->Open());
  ASSERT_TRUE(sessions.back()->Join());
  ASSERT_TRUE(fleet.WaitForMoreRounds(40));
  const int64_t before = fleet.ResidentBytes();
  // Each takes the name from the one before, is sent the log from its beginning, and reads none of it.
  int let_in = 0;
  for (int i = 0; i < 15; ++i) {
    sessions.push_back(mallory->Open());
    let_in += sessions.back()->CheckIn() && sessions.back()->SayReady() ? 1 : 0;
  }
  EXPECT_EQ(let_in, 15);
  EXPECT_TRUE(fleet.WaitForMoreRounds(3));
  const int64_t grown = fleet.ResidentBytes() - before;
  EXPECT_LT(grown, int64_t{64} << 20) << sessions.size() << " sessions";
}

// On the small model: what waits for the session stays far below the bound that would end it before its time.
TEST(AttackSessions, ASessionThatIsNotReadIsEnded) {
  AttackedFleet fleet;
  fleet.Serve(kWideRun, {"--unread-timeout", "2"});
  fleet.StartHonest(2);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join());
  const auto is_ended = [&] { return fleet.CountEvents("client_left", "mallory") == 1; };
  EXPECT_TRUE(WaitUntil(is_ended, kAttackPatience));
  EXPECT_FALSE(session->End().ok());
  EXPECT_THAT(fleet.processes().coordinator().Output(), HasSubstr("leaves what it is sent unread"));
  EXPECT_TRUE(fleet.WaitForMoreRounds(3));
}

TEST(AttackSessions, AClientHasAFewSessionsAtATime) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  const auto mallory = fleet.Hostile("mallory");
  std::vector<std::unique_ptr<HostileSession>> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(mallory->Open());
  // A call that was let in while the others were still on their way is cancelled without this reason.
  std::string why;
  const auto hears_why = [&] {
    const auto one_more = mallory->Open();
    if (!one_more->CheckIn()) why = one_more->End().error_message();
    return absl::StrContains(why, "4 sessions open");
  };
  EXPECT_TRUE(WaitUntil(hears_why, absl::Seconds(10))) << why;
  silent.clear();
  EXPECT_TRUE(WaitUntil([&] { return mallory->Open()->CheckIn(); }, kAttackPatience)) << "once they have ended";
}

TEST(AttackSessions, ReadyWithAWrongHashIsRefusedAfterAFew) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  const auto mallory = fleet.Hostile("mallory");
  int answered = 0;
  for (int i = 0; i < 5; ++i) {
    const auto session = mallory->Open(absl::Seconds(20));
    ASSERT_TRUE(session->CheckIn());
    for (int j = 0; j < 100 && session->SayReady(0, Id128{1, 2}); ++j) {
      if (!session->Await<Resync>().has_value()) break;
      ++answered;
    }
    EXPECT_THAT(session->Refusal(), HasSubstr("3 times that it holds a model"));
  }
  EXPECT_LT(answered, 5 * 3);
  EXPECT_LE(fleet.CountEvents("model_drift"), 3);
  EXPECT_TRUE(fleet.IsServing());
}

TEST(AttackSessions, AnUpdateThatNobodyAskedForIsNotDecoded) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  fleet.StartHonest(2);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->Join());
  // Bytes that no decoder takes, under an id that fits them.
  ASSERT_TRUE(session->Say(session->MakeUpdate(1'000'000'000, "no message of any codec")));
  const absl::optional<Verdict> unknown = session->Await<Verdict>();
  ASSERT_TRUE(unknown.has_value()) << session->Refusal();
  EXPECT_EQ(unknown->outcome, Outcome::kPending);
  // An update for the assigned round is decoded, and is found to be unusable.
  // The round may have closed meanwhile; then the next one's work is answered.
  for (int attempt = 0; attempt < 50; ++attempt) {
    const absl::optional<Assignment> work = session->Await<Assignment>();
    if (!work.has_value() || !session->Say(session->MakeUpdate(work->round, "no message of any codec"))) break;
    if (!session->Await<Verdict>().has_value()) break;
  }
  EXPECT_THAT(session->Refusal(), HasSubstr("unusable"));
}

TEST(AttackSessions, FilesAreForThoseWhoMayJoinAndHave) {
  AttackedFleet fleet;
  fleet.Serve(std::string(kRun) + "[clients]\nallow = ['client-*', 'mallory']\n");
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open();
  ASSERT_TRUE(session->CheckIn());
  const Id128 lineage = session->welcome().lineage;
  std::string bytes;
  EXPECT_TRUE(mallory->DownloadCheckpoint(lineage, 0, &bytes).ok());
  EXPECT_GT(bytes.size(), 4 * fleet.layout().size());
  for (const char* stranger : {"eve", "client-9"}) {
    const auto client = fleet.Hostile(stranger);
    EXPECT_EQ(client->DownloadCheckpoint(lineage, 0, &bytes).error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(bytes, "");
    EXPECT_EQ(client->DownloadModule(lineage, &bytes).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST(AttackSessions, AClientHearsOnlyOfRunsThatItMayJoin) {
  AttackedFleet fleet;
  const std::string other = fleet.processes().directory() / "other.toml";
  WriteText(other,
            "name = 'merger-plans'\n[train]\nlocal_steps = 1\noptimizer.learning_rate = 1.0\n[codec]\n"
            "name = 'sbc'\n[rounds]\ncount = 1\n[clients]\nallow = ['board-*']\n");
  fleet.Serve(kRun, {"--run-file", other});
  const auto mallory = fleet.Hostile("mallory");
  const auto asks = mallory->Open();
  EXPECT_FALSE(asks->CheckIn("no-such-run"));
  EXPECT_THAT(asks->Refusal(), AllOf(HasSubstr("there are: attacked"), Not(HasSubstr("merger-plans"))));
  EXPECT_TRUE(mallory->Open()->CheckIn()) << "the only run that it may join needs no name";
}

TEST(AttackSessions, SessionsOfAnAuthorityThatIsNoLongerTrustedEnd) {
  AttackedFleet fleet;
  fleet.Serve(kRun);
  const auto mallory = fleet.Hostile("mallory");
  const auto session = mallory->Open(absl::Seconds(15));
  ASSERT_TRUE(session->CheckIn());
  fleet.authority().ChangeAuthority();
  EXPECT_NE(session->End().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << "it ends long before";
  // Nor does the connection, which is still open, carry another one.
  EXPECT_FALSE(mallory->Open(absl::Seconds(15))->CheckIn());
}

}  // namespace
}  // namespace terse
