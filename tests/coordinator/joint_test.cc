#include "coordinator/control/joint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/match.h"
#include "core/random.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kParameters = 10'000;

RunConfig Joint(std::vector<int64_t> steps, int64_t iterations, double budget) {
  RunConfig config;
  config.control.name = "joint";
  config.control.local_steps = std::move(steps);
  config.control.density = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1};
  config.control.budget = budget;
  config.limits.iterations = iterations;
  return config;
}

// Returns the size of a message of this density: an envelope, and positions that are dearer than their entropy.
int64_t MessageBytes(double p) {
  const double entropy = -(p * std::log2(p) + (1 - p) * std::log2(1 - p));
  return 20 + std::llround(1.05 * kParameters * entropy / 8);
}

struct Played {
  std::vector<RoundPlan> plans;
  int64_t bytes = 0;  // of a client
  int64_t iterations = 0;
};

// Trains to the end; `loss` is that of the round that begins at an iteration.
Played PlayJoint(const RunConfig& config, const std::function<double(int64_t)>& loss) {
  JointController controller(config, kParameters);
  Played played;
  while (played.iterations < config.limits.iterations && played.plans.size() < 10'000) {
    const int64_t round = static_cast<int64_t>(played.plans.size()) + 1;
    const RoundPlan plan = controller.Decide(round, played.iterations);
    EXPECT_EQ(controller.Decide(round + 1, played.iterations), plan) << "an aborted round changes nothing";
    EXPECT_EQ(plan.first_iteration, played.iterations);
    const int64_t bytes = MessageBytes(config.control.density[plan.choice]);
    controller.Observe({round, plan, 4, 4 * bytes, loss(played.iterations), 1000});
    played.plans.push_back(plan);
    played.bytes += bytes;
    played.iterations += plan.local_steps;
  }
  return played;
}

double Falling(int64_t iteration) { return 2.0 / (1.0 + static_cast<double>(iteration) / 100); }

LearningRateSchedule Decays(std::vector<int64_t> at) {
  LearningRateSchedule schedule;
  schedule.factor = 0.5;
  schedule.at = std::move(at);
  return schedule;
}

TEST(JointTurns, PhasesBeginWithDecays) {
  EXPECT_THAT(JointTurns(Decays({30, 50}), 3, 60), ElementsAre(30, 50));
  EXPECT_THAT(JointTurns(Decays({5, 8, 10, 12, 14}), 3, 16), ElementsAre(8, 12));
  EXPECT_THAT(JointTurns(Decays({5, 8, 10, 12, 14}), 2, 16), ElementsAre(10));
  EXPECT_THAT(JointTurns(Decays({5, 8, 20}), 3, 16), ElementsAre(5, 8)) << "one comes after the end";
  LearningRateSchedule periodic = Decays({});
  periodic.from = 1000;
  periodic.every = 1;
  EXPECT_THAT(JointTurns(periodic, 2, 1'000'000'000'000), ElementsAre(500'000'000'499));
  LearningRateSchedule from_start = Decays({});
  from_start.every = 1000;  // it has decayed once when the run begins
  EXPECT_THAT(JointTurns(from_start, 2, 2000), ElementsAre(1000));
  EXPECT_THAT(JointTurns(from_start, 3, 1000), ElementsAre(750, 937));
}

TEST(JointTurns, WithoutDecaysAfterThreeQuartersOfWhatIsLeft) {
  EXPECT_THAT(JointTurns({}, 1, 1600), ElementsAre());
  EXPECT_THAT(JointTurns({}, 3, 1600), ElementsAre(1200, 1500));
  EXPECT_THAT(JointTurns(Decays({40}), 3, 80), ElementsAre(40, 70));
  EXPECT_THAT(JointTurns({}, 3, 1), ElementsAre(0, 0));
  LearningRateSchedule growing = Decays({10});
  growing.factor = 2;
  EXPECT_THAT(JointTurns(growing, 2, 100), ElementsAre(75));
}

TEST(Joint, TemporalSparsityFirstAndGradientSparsityAtTheEnd) {
  const RunConfig config = Joint({100, 10}, 2000, 14'000);
  const Played played = PlayJoint(config, Falling);
  EXPECT_EQ(played.iterations, 2000);
  EXPECT_LE(played.bytes, 14'000);
  EXPECT_GT(played.bytes, 13'000);
  double early = 0, late = 0;
  for (const RoundPlan& plan : played.plans) {
    const bool is_early = plan.first_iteration < 1500;
    EXPECT_EQ(plan.local_steps, is_early ? 100 : 10) << plan.why;
    (is_early ? early : late) += MessageBytes(config.control.density[plan.choice]);
  }
  EXPECT_GT(played.plans.front().choice, played.plans[20].choice) << "fewer steps, sparser messages";
  EXPECT_NEAR(late / 500, kJointGrowth * early / 1500, 0.25 * late / 500);
}

TEST(Joint, PhasesEndWhereTheNextBegins) {
  RunConfig config = Joint({100, 10}, 300, 2'000);
  config.train.schedule = Decays({130});
  const Played played = PlayJoint(config, Falling);
  EXPECT_EQ(played.plans[0].local_steps, 65);
  EXPECT_EQ(played.plans[1].local_steps, 65);
  EXPECT_EQ(played.plans[2].local_steps, 10);
}

TEST(Joint, NeverStalls) {
  const Played played = PlayJoint(Joint({100, 10}, 2000, 1), Falling);
  ASSERT_EQ(played.plans.size(), 20u);
  for (const RoundPlan& plan : played.plans) {
    EXPECT_EQ(plan.local_steps, 100);
    EXPECT_EQ(plan.choice, 0);
    EXPECT_THAT(plan.why, HasSubstr("the least that a round sends"));
  }
}

TEST(Joint, TakesALargerNWhereTheLeastDensityIsTooDear) {
  // The last phase has 125 iterations and some 5 messages.
  const Played played = PlayJoint(Joint({100, 50, 10}, 2000, 30 * MessageBytes(0.001)), Falling);
  EXPECT_LE(played.bytes, 30 * MessageBytes(0.001));
  for (const RoundPlan& plan : played.plans) {
    EXPECT_GT(plan.local_steps, 10);
    EXPECT_THAT(plan.why, Not(HasSubstr("the least")));
  }
}

TEST(Joint, MoreThanItCanSpendBuysFewerSteps) {
  const Played played = PlayJoint(Joint({100, 10}, 2000, 1e12), Falling);
  EXPECT_EQ(played.plans.size(), 200u);
  for (const RoundPlan& plan : played.plans) {
    EXPECT_EQ(plan.choice, 6);
    const bool is_early = plan.first_iteration < 1500;
    EXPECT_EQ(absl::StrContains(plan.why, "the largest density leaves bytes"), is_early) << plan.why;
  }
}

TEST(Joint, BytesThatTheLargestDensityLeavesBuyFewerSteps) {
  // 15 messages of 100 steps at the largest density take half of what the first phase has; 150 shorter ones take more.
  const double budget = 200 * MessageBytes(0.02);
  const Played played = PlayJoint(Joint({100, 10}, 2000, budget), Falling);
  EXPECT_EQ(played.plans.size(), 200u);
  EXPECT_LE(played.bytes, budget);
  EXPECT_GT(played.bytes, 0.8 * budget);
  EXPECT_LT(played.plans[0].choice, 6);
  EXPECT_THAT(played.plans[0].why, HasSubstr("fewer steps since the largest density leaves bytes"));
}

TEST(Joint, FewerStepsThatWouldSpendLessAreNotTaken) {
  const double largest = static_cast<double>(MessageBytes(0.1) - 20) / 1.05;
  // 15 messages of 100 steps leave a little of the first phase's bytes; of 16 none could have the largest density.
  const RoundPlan few = PlayJoint(Joint({100, 99}, 2000, 15.5 * largest / 0.6), Falling).plans[0];
  EXPECT_EQ(few.local_steps, 100);
  EXPECT_EQ(few.choice, 6);
  // 3 messages of 1000 steps leave a little too, which 3000 messages cannot live on.
  const RoundPlan least = PlayJoint(Joint({1000, 1}, 4000, 3.1 * largest / 0.6), Falling).plans[0];
  EXPECT_EQ(least.local_steps, 1000);
  EXPECT_EQ(least.choice, 6);
}

TEST(Joint, SaysWhyItDoesNotDoAsThePhaseSays) {
  RunConfig config = Joint({100, 10}, 300, 2'000);
  config.train.schedule = Decays({130});
  const Played decays = PlayJoint(config, Falling);
  EXPECT_THAT(decays.plans[0].why, StartsWith("phase 1 of 2: 65 steps, density "));
  EXPECT_THAT(decays.plans[2].why, StartsWith("phase 2 of 2 from iteration 130, where the rate decays: 10 steps"));
  const Played none = PlayJoint(Joint({100, 10}, 400, 2'000), Falling);
  EXPECT_THAT(none.plans.back().why, StartsWith("phase 2 of 2 from iteration 300: 10 steps"));
  const Played dear = PlayJoint(Joint({100, 50, 10}, 2000, 30 * MessageBytes(0.001)), Falling);
  EXPECT_THAT(dear.plans.back().why, HasSubstr("more steps since shorter rounds cost too much"));
}

TEST(Joint, ALossThatRisesBuysFewerSteps) {
  const RunConfig config = Joint({100, 50, 10}, 6000, 50'000);
  const Played played = PlayJoint(config, [](int64_t iteration) {
    return iteration < 1000 ? Falling(iteration) : Falling(1000) + static_cast<double>(iteration - 1000) / 100;
  });
  const auto first = [&](int64_t steps) {
    for (const RoundPlan& plan : played.plans) {
      if (plan.local_steps == steps) return plan.first_iteration;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(first(100), 0);
  EXPECT_GT(first(50), 1000);
  EXPECT_LT(first(50), 3000);
  for (const RoundPlan& plan : played.plans) {
    const int64_t of_phase = plan.first_iteration < 4500 ? 100 : plan.first_iteration < 5625 ? 50 : 10;
    const bool fewer = plan.local_steps < of_phase;
    EXPECT_EQ(absl::StrContains(plan.why, "fewer steps since the loss rose"), fewer) << plan.why;
  }
  EXPECT_LE(played.bytes, 50'000);
  EXPECT_EQ(played.iterations, 6000);
}

TEST(Joint, ALossThatRisesSkipsEqualSteps) {
  const auto rising = [](int64_t iteration) { return iteration < 1600 ? 1.0 : 1.0 + (iteration - 1600) / 1000.0; };
  const Played played = PlayJoint(Joint({100, 100, 10}, 6000, 20'000), rising);
  const auto fewer = std::find_if(played.plans.begin(), played.plans.end(),
                                  [](const RoundPlan& plan) { return plan.local_steps == 10; });
  ASSERT_NE(fewer, played.plans.end());
  EXPECT_LT(fewer->first_iteration, 3000) << "one rise is enough";
  const Played alone = PlayJoint(Joint({10}, 600, 50'000), rising);
  for (const RoundPlan& plan : alone.plans) EXPECT_THAT(plan.why, Not(HasSubstr("since the loss rose")));
}

TEST(Joint, NoiseIsNoRise) {
  Random random(7);
  const Played played = PlayJoint(Joint({10, 5}, 10'000, 1e5), [&](int64_t) { return random.Uniform(0.8, 1.2); });
  for (const RoundPlan& plan : played.plans) EXPECT_EQ(plan.local_steps, plan.first_iteration < 7500 ? 10 : 5);
}

// Losses after other local steps belong to other models: the mean over a round says more of its end when it is long.
TEST(Joint, LossesOfAnotherNAreNotCompared) {
  const RunConfig config = Joint({100, 20, 5}, 4000, 20'000);
  const Played played = PlayJoint(config, [](int64_t iteration) { return iteration < 3000 ? 1.0 : 2.0; });
  for (const RoundPlan& plan : played.plans) EXPECT_THAT(plan.why, Not(HasSubstr("since the loss rose")));
}

TEST(Joint, APriceIsPaidForWhatTheLossHasFallenBy) {
  RunConfig config = Joint({100, 10}, 2000, 0);
  config.control.price = 10'000;
  const Played flat = PlayJoint(config, [](int64_t) { return 1.0; });
  EXPECT_EQ(flat.plans.size(), 20u);
  EXPECT_EQ(flat.bytes, 20 * MessageBytes(0.001));
  const Played falling = PlayJoint(config, Falling);
  EXPECT_GT(falling.bytes, 2 * flat.bytes);
  EXPECT_LE(falling.bytes, 2 * 10'000);
}

TEST(Joint, MeasuredBytesDecide) {
  // Messages that cost ten times their entropy, at the same budget.
  const RunConfig config = Joint({100}, 2000, 20'000);
  JointController cheap(config, kParameters), dear(config, kParameters);
  const RoundPlan plan = cheap.Decide(1, 0);
  cheap.Observe({1, plan, 2, 2 * MessageBytes(0.1), 1, 1000});
  dear.Observe({1, plan, 2, 20 * MessageBytes(0.1), 1, 1000});
  EXPECT_LT(dear.Decide(2, 100).choice, cheap.Decide(2, 100).choice);
}

// A bit map costs as much for three elements in four as for a half.
TEST(Joint, DenserThanAHalfIsNotCheaper) {
  RunConfig config = Joint({100}, 1000, 7'000);
  config.control.density = {0.1, 0.5, 0.99};
  const RoundPlan plan = JointController(config, kParameters).Decide(1, 0);
  EXPECT_EQ(plan.choice, 0) << plan.why;
}

// Before anything is measured, values count too: 0.1 of 10,000 elements are 4,000 bytes beside their positions.
TEST(Joint, TheFirstMessageIsPaidWithItsValues) {
  RunConfig config = Joint({100}, 1000, 10 * 600);
  EXPECT_EQ(JointController(config, kParameters).Decide(1, 0).choice, 6);
  config.codec.name = "top_k";
  const RoundPlan plan = JointController(config, kParameters).Decide(1, 0);
  EXPECT_EQ(plan.choice, 3) << plan.why;
}

TEST(Joint, OneDearMessageDoesNotDecide) {
  const RunConfig config = Joint({10}, 2000, 30'000);
  JointController controller(config, kParameters);
  double sent = 0;
  for (int64_t round = 1; round <= 200; ++round) {
    const RoundPlan plan = controller.Decide(round, 10 * (round - 1));
    EXPECT_TRUE(round != 6 || plan.choice >= 2) << "not even the next one is taken to be so dear";
    const int64_t bytes = (round == 5 ? 20 : 1) * MessageBytes(config.control.density[plan.choice]);
    controller.Observe({round, plan, 1, bytes, 1, 1000});
    sent += static_cast<double>(bytes);
  }
  EXPECT_LE(sent, 30'000);
  EXPECT_GT(sent, 29'000) << "densities stayed out of use";
}

// A client that reports what is no loss buys nothing with it.
TEST(Joint, AnImpossibleLossPaysNoMoreThanAPerfectOne) {
  RunConfig config = Joint({100, 10}, 2000, 0);
  config.control.price = 10'000;
  const auto from = [&](double low) {
    return PlayJoint(config, [&](int64_t iteration) { return iteration < 500 ? 1.0 : low; });
  };
  EXPECT_EQ(from(-1e300).bytes, from(0).bytes);
  EXPECT_LE(from(-1e300).bytes, 10'000);
}

// Whatever clients report, plans stay within what the operator has set.
TEST(Joint, NoOutcomeBreaksAPlan) {
  const double odd[] = {0, -1e300, 1e308, -1e308, 1, std::numeric_limits<double>::denorm_min()};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    RunConfig config = Joint({20, 7, 3}, 1 + static_cast<int64_t>(random.Below(500)), 0);
    (random.Below(2) == 0 ? config.control.budget : config.control.price) = random.Uniform(1, 1e6);
    if (random.Below(2) == 0) config.train.schedule = Decays({50, 60});
    JointController controller(config, kParameters);
    int64_t iterations = 0, round = 0;
    while (iterations < config.limits.iterations) {
      const RoundPlan plan = controller.Decide(++round, iterations);
      ASSERT_GE(plan.local_steps, 1);
      ASSERT_LE(plan.local_steps, 20);
      ASSERT_GE(plan.choice, 0);
      ASSERT_LT(plan.choice, 7);
      iterations += plan.local_steps;
      const int64_t bytes = random.Below(4) == 0 ? 0 : static_cast<int64_t>(random.Below(1'000'000'000));
      controller.Observe({round, plan, static_cast<int64_t>(random.Below(3)), bytes, odd[random.Below(6)], 0});
    }
    EXPECT_EQ(iterations, config.limits.iterations);
    EXPECT_LE(round, (config.limits.iterations + 2) / 3) << "rounds.count is enough";
  }
}

}  // namespace
}  // namespace terse
