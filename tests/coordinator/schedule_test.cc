#include "coordinator/control/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/control/controller_table.h"
#include "terse/v1/run_config.pb.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

RunConfig Schedule(const std::string& by, std::vector<int64_t> at) {
  RunConfig config;
  config.train.local_steps = 7;
  config.control.name = "schedule";
  config.control.by = by;
  config.control.at = std::move(at);
  config.control.local_steps = {10, 5, 1};
  config.control.density = {0.1, 0.01, 0.001};
  return config;
}

// Commits rounds with these losses; the local steps that each was planned with.
std::vector<int64_t> StepsOf(Controller& controller, const std::vector<double>& losses) {
  std::vector<int64_t> steps;
  int64_t round = 0, iterations = 0;
  for (double loss : losses) {
    const RoundPlan plan = controller.Decide(++round, iterations);
    EXPECT_EQ(plan.first_iteration, iterations);
    steps.push_back(plan.local_steps);
    controller.Observe({round, plan, 3, 100, loss, 1000});
    iterations += plan.local_steps;
  }
  return steps;
}

TEST(Schedule, ByRoundCountsCommittedRounds) {
  ScheduleController controller(Schedule("round", {2, 3}));
  EXPECT_THAT(StepsOf(controller, {1, 1, 1, 1, 1}), ElementsAre(10, 10, 5, 1, 1));
}

TEST(Schedule, AnAbortedRoundDelaysNothing) {
  ScheduleController controller(Schedule("round", {1, 2}));
  EXPECT_EQ(controller.Decide(1, 0), controller.Decide(2, 0));
  controller.Observe({2, controller.Decide(2, 0), 3, 100, 1, 1000});
  EXPECT_EQ(controller.Decide(3, 10).local_steps, 5);
}

TEST(Schedule, ByIterationLooksAtWhereARoundBegins) {
  ScheduleController controller(Schedule("iteration", {20, 26}));
  EXPECT_THAT(StepsOf(controller, {1, 1, 1, 1, 1, 1}), ElementsAre(10, 10, 5, 5, 1, 1));
}

TEST(Schedule, ByPlateauEndsAStageWhenTheLossStopsFalling) {
  RunConfig config = Schedule("plateau", {});
  config.control.patience = 2;
  ScheduleController controller(config);
  // 5+4 > 3+2 goes on, 4+3 > 2+3 goes on, 3+2 = 3+2 ends it; then anew: 9+9 = 9+9.
  EXPECT_THAT(StepsOf(controller, {5, 4, 3, 2, 3, 2, 9, 9, 9, 9, 9, 9, 9, 9, 9}),
              ElementsAre(10, 10, 10, 10, 10, 10, 5, 5, 5, 5, 1, 1, 1, 1, 1));
}

TEST(Schedule, NamesTheCodingOfItsStage) {
  ScheduleController controller(Schedule("round", {1, 2}));
  EXPECT_EQ(controller.Decide(1, 0).choice, 0);
  controller.Observe({1, controller.Decide(1, 0), 3, 100, 1, 1000});
  EXPECT_EQ(controller.Decide(2, 10).choice, 1);
  EXPECT_THAT(controller.Decide(2, 10).why, HasSubstr("stage 2 of 3"));
  RunConfig steps_only = Schedule("round", {1, 2});
  steps_only.control.density.clear();
  ScheduleController plain(steps_only);
  plain.Observe({1, plain.Decide(1, 0), 3, 100, 1, 1000});
  EXPECT_EQ(plain.Decide(2, 10).choice, 0);
  RunConfig density_only = Schedule("round", {1, 2});
  density_only.control.local_steps.clear();
  EXPECT_EQ(ScheduleController(density_only).Decide(1, 0).local_steps, 7);
}

TEST(ControllerTable, ARunFileMayNameEveryRow) {
  const auto& names = v1::Control::descriptor()->FindFieldByName("name")->options().GetExtension(v1::rule).one_of();
  EXPECT_THAT(ControllerNames(), UnorderedElementsAreArray(std::vector<std::string>(names.begin(), names.end())));
}

TEST(ControllerTable, MakesEveryRowAndNamesThemInItsError) {
  RunConfig config = Schedule("round", {1, 2});
  for (const std::string& name : ControllerNames()) {
    config.control.name = name;
    const auto controller = MakeController(config, 1000);
    ASSERT_TRUE(controller.ok()) << name;
    EXPECT_EQ(*controller == nullptr, name == "fixed");
  }
  config.control.name = "none";
  EXPECT_THAT(MakeController(config, 1000).status().message(), HasSubstr("known ones are fixed, schedule"));
}

}  // namespace
}  // namespace terse
