// Whole fleets whose rounds a controller plans: what clients are told, what is stored, and what a restart continues.
#include <set>
#include <string>

#include "compression/choice_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/sqlite_db.h"
#include "tests/coordinator/crew.h"

namespace terse {
namespace {

using ::testing::HasSubstr;

RunConfig StagedRun(int64_t clients, int64_t rounds) {
  RunConfig config = GridRunConfig(clients, rounds);
  config.control.name = "schedule";
  config.control.at = {2, 4};
  config.control.local_steps = {3, 1, 5};
  config.control.density = {0.01, 0.05, 0.1};
  return config;
}

RunConfig MqgradRun(int64_t clients, int64_t rounds) {
  RunConfig config = GridRunConfig(clients, rounds);
  config.control.name = "mqgrad";
  config.seed = 7;  // explores early and often
  config.codec.name = "qsgd";
  config.downstream = DownstreamMode::kCoded;
  config.downstream_codec.name = "qsgd";
  return config;
}

RunConfig JointRun(int64_t clients, int64_t rounds) {
  RunConfig config = GridRunConfig(clients, rounds);
  config.control.name = "joint";
  config.control.local_steps = {4, 2, 1};
  config.control.density = {0.01, 0.02, 0.05, 0.1};
  config.control.budget = 900;
  config.limits.iterations = 30;
  return config;
}

TEST(EngineControl, TellsClientsTheRoundsPlan) {
  Crew crew(StagedRun(2, 6), 2);
  const std::vector<int64_t> steps = {3, 3, 1, 1, 5, 5}, choices = {0, 0, 1, 1, 2, 2}, first = {0, 3, 6, 7, 8, 13};
  for (int64_t round = 1; round <= 6; ++round) {
    const std::vector<Assignment> assignments = crew.at(0).All<Assignment>();
    ASSERT_EQ(static_cast<int64_t>(assignments.size()), round);
    EXPECT_EQ(assignments.back().local_steps, steps[round - 1]);
    EXPECT_EQ(assignments.back().choice, choices[round - 1]);
    EXPECT_EQ(assignments.back().first_iteration, absl::optional<int64_t>(first[round - 1]));
    crew.DeliverAll();
  }
  const std::vector<RoundRecord> rounds = *crew.fleet.store()->Rounds(1, 6);
  for (int64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(rounds[i].plan.has_value());
    EXPECT_EQ(rounds[i].plan->local_steps, steps[i]);
    EXPECT_EQ(rounds[i].plan->first_iteration, first[i]);
    EXPECT_EQ(rounds[i].dense_bytes_up, 2 * 4 * GridLayout().size() * steps[i]);
    EXPECT_GT(rounds[i].update_bytes, 0);
  }
  EXPECT_EQ(CheckPlans(crew.fleet.store(), crew.fleet.config()), absl::OkStatus());
}

TEST(EngineControl, AFixedRunHasNoPlans) {
  Crew crew(GridRunConfig(2, 2), 2);
  EXPECT_FALSE(crew.at(0).All<Assignment>().back().first_iteration.has_value());
  EXPECT_EQ(crew.at(0).All<Assignment>().back().local_steps, crew.fleet.config().train.local_steps);
  crew.DeliverAll();
  EXPECT_FALSE((*crew.fleet.store()->LastRound())->plan.has_value());
}

TEST(EngineControl, AnAbortedRoundsIterationsAreDoneAgain) {
  RunConfig config = StagedRun(2, 6);
  config.control.by = "iteration";
  config.control.at = {3, 4};
  Crew crew(config, 2);
  crew.DeliverAll();  // iterations 0 to 2
  crew.Deliver(0, 2);
  crew.Pass(crew.SecondsToDeadline() + 1);
  crew.Pass(crew.SecondsToDeadline() + 1);
  ASSERT_EQ(crew.RoundStateOf(2), RoundState::kAborted);
  crew.Restart();
  crew.Join(0);
  crew.Join(1);
  ASSERT_EQ(crew.view().round, 3);
  const RoundPlan plan = *(*crew.fleet.store()->LastRound())->plan;
  EXPECT_EQ(plan.first_iteration, 3);
  EXPECT_EQ(plan.local_steps, 1);
  crew.DeliverAll();
  EXPECT_EQ((*crew.fleet.store()->LastRound())->plan->first_iteration, 4);
  EXPECT_EQ(CheckPlans(crew.fleet.store(), crew.fleet.config()), absl::OkStatus());
}

class EngineControlled : public ::testing::TestWithParam<RunConfig (*)(int64_t, int64_t)> {};

TEST_P(EngineControlled, GoesOnWithTheSamePolicyAfterEveryRestart) {
  FleetSimulation fleet(GetParam()(3, 11), 3);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t kill = 0; kill < 8; ++kill) {
    for (int64_t step = 0; step < 17 + kill; ++step) ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    fleet.KillCoordinator();
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus()) << kill;
    EXPECT_EQ(CheckPlans(fleet.store(), fleet.config()), absl::OkStatus()) << kill;
    fleet.ConnectAll();
  }
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  EXPECT_EQ(fleet.engine()->View().head.version, 11);
  EXPECT_EQ(CheckPlans(fleet.store(), fleet.config()), absl::OkStatus());
  EXPECT_EQ(CheckReplay(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(Policies, EngineControlled, ::testing::Values(StagedRun, MqgradRun, JointRun));

TEST(EngineControl, WhatClientsSendAndReceiveHasTheChoice) {
  for (RunConfig (*make)(int64_t, int64_t) : {StagedRun, MqgradRun, JointRun}) {
    FleetSimulation fleet(make(2, 30), 2);
    ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
    ASSERT_EQ(fleet.Settle(), absl::OkStatus());
    const std::vector<RoundRecord> rounds = *fleet.store()->Rounds(1, 1000);
    const int64_t count = static_cast<int64_t>(rounds.size());
    const std::vector<LogMessage> log = *fleet.store()->ReadLog(0, count);
    ASSERT_GE(count, 6);
    const bool forwards = fleet.config().downstream == DownstreamMode::kForward;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t choice =
          forwards ? ChoiceOf(ParseForwarded(log[i].downstream)->updates[0]) : CodedChoice(log[i].downstream);
      EXPECT_EQ(choice, rounds[i].plan->choice) << i;
    }
    if (!forwards) continue;
    const auto by_choice = [](const RoundRecord& a, const RoundRecord& b) { return a.plan->choice < b.plan->choice; };
    const auto [least, most] = std::minmax_element(rounds.begin(), rounds.end(), by_choice);
    EXPECT_GT(most->update_bytes, least->update_bytes);  // a higher density
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(CheckConservation(fleet.store(), fleet.codec(), i, *fleet.state(i)->Read(), {}), absl::OkStatus());
    }
  }
}

TEST(EngineControl, AnUpdateOfAnotherCodingIsRefused) {
  Crew crew(StagedRun(2, 6), 2);
  for (int64_t round = 1; round <= 2; ++round) crew.DeliverAll();
  Update update = crew.MakeUpdate(0, 3);  // coding 1
  update.message = *crew.fleet.codec().Encode(GridDelta(0, 3));
  update.update_id = MakeUpdateId((*crew.fleet.store()->Run())->lineage, 3, 0, crew.LastApplied(0), update.message);
  EXPECT_EQ(crew.at(0).Say(update), absl::OkStatus());
  ASSERT_EQ(crew.at(0).Count<Refusal>(), 1);
  EXPECT_THAT(crew.at(0).All<Refusal>()[0].reason, HasSubstr("not coded as its assignment said"));
  EXPECT_EQ(EventsOf(crew.fleet, "update_rejected").size(), 1);
  crew.Leave(0);
  crew.Join(0);
  crew.DeliverAll();
  EXPECT_EQ(crew.RoundStateOf(3), RoundState::kCommitted);
}

// A restarted policy gets from the store what it learns from: the losses and the times of its rounds.
TEST(EngineControl, MqgradLearnsTheSameAcrossRestarts) {
  FleetSimulation fleet(MqgradRun(2, 150), 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t step = 0; fleet.engine()->View().head.version < 150; ++step) {
    ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    fleet.clock()->Advance(0.001 * static_cast<double>(step % 7));
    if (step % 101 != 100) continue;
    fleet.KillCoordinator();
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    fleet.ConnectAll();
  }
  EXPECT_EQ(CheckPlans(fleet.store(), fleet.config()), absl::OkStatus());
  std::set<std::string> reasons;
  std::set<int64_t> choices, durations;
  const std::vector<RoundRecord> rounds = *fleet.store()->Rounds(1, 1000);
  for (const RoundRecord& round : rounds) {
    reasons.insert(round.plan->why);
    choices.insert(round.plan->choice);
    durations.insert(round.committed_us - round.opened_us);
  }
  EXPECT_GT(choices.size(), 1u);
  EXPECT_GT(reasons.size(), 5u);  // they name what Q is, so it moved
  EXPECT_GT(durations.size(), 5u);
}

// Restarts see the measured bytes again, which the plans follow, and the run ends with its iterations.
TEST(EngineControl, JointSpendsItsBudgetAcrossRestarts) {
  FleetSimulation fleet(JointRun(2, 30), 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  for (int64_t step = 1; !fleet.engine()->View().ended; ++step) {
    ASSERT_EQ(fleet.DeliverAny(nullptr).status(), absl::OkStatus());
    if (step % 23 != 0) continue;
    fleet.KillCoordinator();
    ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
    fleet.ConnectAll();
  }
  EXPECT_EQ(CheckPlans(fleet.store(), fleet.config()), absl::OkStatus());
  int64_t iterations = 0, bytes = 0;
  std::set<int64_t> choices, steps;
  const std::vector<RoundRecord> rounds = *fleet.store()->Rounds(1, 1000);
  for (const RoundRecord& round : rounds) {
    if (round.state != RoundState::kCommitted) continue;
    EXPECT_EQ(round.plan->first_iteration, iterations);
    iterations += round.plan->local_steps;
    bytes += round.update_bytes;
    choices.insert(round.plan->choice);
    steps.insert(round.plan->local_steps);
  }
  EXPECT_EQ(iterations, 30);
  EXPECT_LE(bytes, 2 * 900);
  EXPECT_GT(bytes, 2 * 700);
  EXPECT_GT(choices.size(), 1u);
  EXPECT_GT(steps.size(), 1u);
  EXPECT_THAT((*fleet.store()->Run())->reason, HasSubstr("30 iterations are done"));
}

TEST(EngineControl, AServerWithAStateRepeatsItsChoices) {
  RunConfig config = MqgradRun(2, 150);
  config.server.name = "sgd";
  config.server.learning_rate = 0.5;
  FleetSimulation fleet(config, 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  ASSERT_EQ(fleet.Settle(), absl::OkStatus());
  fleet.KillCoordinator();
  ASSERT_EQ(fleet.StartCoordinator(), absl::OkStatus());
  EXPECT_EQ(CheckServerSteps(fleet.store(), fleet.config(), fleet.downstream_codecs(), GridInitialWeights()),
            absl::OkStatus());
  std::set<int64_t> choices;
  const std::vector<RoundRecord> rounds = *fleet.store()->Rounds(1, 150);
  for (const RoundRecord& round : rounds) choices.insert(round.plan->choice);
  EXPECT_GT(choices.size(), 1u);
}

TEST(EngineControl, ARoundWithoutItsPlanIsDamage) {
  FleetSimulation fleet(StagedRun(2, 6), 2);
  ASSERT_EQ(fleet.StartAll(), absl::OkStatus());
  while (fleet.engine()->View().head.version < 3) ASSERT_TRUE(*fleet.DeliverAny(nullptr));
  fleet.KillCoordinator();
  fleet.disk(kCoordinator).Start();
  {
    const auto db = *SqliteDb::Open(fleet.store_directory() + "/run.sqlite", SqliteDb::Mode::kWriter,
                                    fleet.disk(kCoordinator).SqliteVfs());
    ASSERT_EQ(db->Script("DELETE FROM plans WHERE round = 2"), absl::OkStatus());
  }
  const absl::Status status = fleet.StartCoordinator();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("round 2 has no plan"));
}

}  // namespace
}  // namespace terse
