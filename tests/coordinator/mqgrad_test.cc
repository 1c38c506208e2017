#include "coordinator/control/mqgrad.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

QNetwork RandomNetwork(uint64_t seed) {
  Random random(seed);
  QNetwork::Parameters parameters;
  for (double& parameter : parameters) parameter = random.Uniform(-1, 1);
  return QNetwork(parameters);
}

QNetwork::Inputs RandomInputs(uint64_t seed) {
  Random random(seed, 1);
  QNetwork::Inputs inputs;
  for (double& input : inputs) input = random.Uniform(-3, 3);
  return inputs;
}

bool AllFinite(const QNetwork::Parameters& parameters) {
  return std::all_of(parameters.begin(), parameters.end(), [](double v) { return std::isfinite(v); });
}

double Square(const QNetwork::Parameters& vector) {
  double square = 0;
  for (const double v : vector) square += v * v;
  return square;
}

TEST(QNetworkTest, ValuesByHand) {
  QNetwork::Parameters parameters{};
  parameters[0] = 2;        // W1 of unit 0, input 0
  parameters[4] = -1;       // unit 0, input 4
  parameters[5] = 1;        // unit 1, input 0: negative below
  parameters[50] = 0.5;     // b1 of unit 0
  parameters[60] = 3;       // W2 of output 0, unit 0
  parameters[61] = 100;     // output 0, unit 1, which is silent
  parameters[120] = -2;     // output 6, unit 0
  parameters[130] = 0.25;   // b2 of output 0
  parameters[131] = -0.75;  // b2 of output 1
  const QNetwork network(parameters);
  // Unit 0: 2 * -1 - 1 * -4 + 0.5 = 2.5; unit 1: max(0, -1).
  EXPECT_THAT(network.Values({-1, 0, 0, 0, -4}), ElementsAre(7.75, -0.75, 0, 0, 0, 0, -5));
}

TEST(QNetworkTest, StartsWithoutPreferenceAndFromTheSeed) {
  EXPECT_THAT(QNetwork(1).Values(RandomInputs(1)), Each(0));
  EXPECT_EQ(QNetwork(1).parameters(), QNetwork(1).parameters());
  EXPECT_NE(QNetwork(1).parameters(), QNetwork(2).parameters());
  EXPECT_GT(Square(QNetwork(1).parameters()), 1);
}

TEST(QNetworkTest, GradientIsThatOfFiniteDifferences) {
  constexpr double kStep = 1e-5;  // no ReLU changes side within it, for these seeds
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const QNetwork network = RandomNetwork(seed);
    const QNetwork::Inputs inputs = RandomInputs(seed);
    for (size_t output = 0; output < QNetwork::kOutputs; ++output) {
      const QNetwork::Parameters gradient = network.Gradient(inputs, output);
      for (size_t i = 0; i < QNetwork::kParameters; ++i) {
        QNetwork::Parameters above = network.parameters();
        QNetwork::Parameters below = network.parameters();
        above[i] += kStep;
        below[i] -= kStep;
        const double difference = QNetwork(above).Values(inputs)[output] - QNetwork(below).Values(inputs)[output];
        EXPECT_NEAR(gradient[i], difference / (2 * kStep), 1e-8) << "seed " << seed << ", parameter " << i;
      }
    }
  }
}

TEST(QNetworkTest, LearnTakesTheBoundedStep) {
  for (const double error : {-0.5, 0.001, 40.0}) {
    QNetwork network = RandomNetwork(3);
    const QNetwork::Inputs inputs = RandomInputs(3);
    const QNetwork::Parameters before = network.parameters();
    const QNetwork::Parameters gradient = network.Gradient(inputs, 4);
    ASSERT_GT(Square(gradient), 2);
    network.Learn(inputs, 4, error, 0.1);
    for (size_t i = 0; i < before.size(); ++i) {
      const double step = 0.1 * std::min(error, 1.0) * gradient[i] / Square(gradient);
      EXPECT_NEAR(network.parameters()[i], before[i] + step, 1e-15);
    }
  }
}

TEST(QNetworkTest, ShortGradientsAreNotMadeLonger) {
  QNetwork network{QNetwork::Parameters{}};  // only b2 has a gradient
  network.Learn({1, 1, 1, 1, 1}, 2, 0.5, 0.1);
  EXPECT_THAT(network.Values({1, 1, 1, 1, 1}), ElementsAre(0, 0, 0.05, 0, 0, 0, 0));
}

TEST(QNetworkTest, LearningReachesItsTarget) {
  QNetwork network(5);
  const QNetwork::Inputs inputs = {2.3, 2.2, 2.2, 2.1, 2.0};
  for (int i = 0; i < 200; ++i) network.Learn(inputs, 3, 0.4 - network.Values(inputs)[3], 0.1);
  EXPECT_NEAR(network.Values(inputs)[3], 0.4, 1e-6);
}

TEST(QNetworkTest, NoErrorMakesALongStep) {
  for (const double error : {1e300, -1e300, kInfinity, -kInfinity, std::nan("")}) {
    QNetwork network = RandomNetwork(7);
    QNetwork::Parameters moved = network.parameters();
    network.Learn({1e6, -1e6, 1e6, 1e6, 1e6}, 0, error, 0.1);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= network.parameters()[i];
    EXPECT_LE(Square(moved), 0.1 * 0.1);
    EXPECT_EQ(Square(moved) == 0, std::isnan(error));
  }
}

RoundOutcome OutcomeOf(int64_t round, const RoundPlan& plan, double loss, double milliseconds) {
  RoundOutcome outcome;
  outcome.round = round;
  outcome.plan = plan;
  outcome.updates = 4;
  outcome.train_loss = loss;
  outcome.duration_us = static_cast<int64_t>(milliseconds * 1000);
  return outcome;
}

RoundPlan PlanOf(int64_t bits) {
  RoundPlan plan;
  plan.choice = bits - kMqgradFewestBits;
  return plan;
}

int64_t BitsOf(const RoundPlan& plan) { return plan.choice + kMqgradFewestBits; }

// The T rounds of one action, with these bits.
void ObserveAction(int64_t bits, double loss, double milliseconds, MqgradController* controller) {
  for (int64_t i = 0; i < kMqgradRounds; ++i) controller->Observe(OutcomeOf(0, PlanOf(bits), loss, milliseconds));
}

// Training as far as a controller sees it.
struct Toy {
  std::function<double(int64_t bits)> fall;          // of the loss in a round
  std::function<double(int64_t bits)> milliseconds;  // of a round
  double loss = 2;
};

std::vector<RoundOutcome> Play(const Toy& toy, int64_t rounds, MqgradController* controller) {
  std::vector<RoundOutcome> outcomes;
  double loss = toy.loss;
  for (int64_t round = 1; round <= rounds; ++round) {
    const RoundPlan plan = controller->Decide(round, round * 10);
    loss -= toy.fall(BitsOf(plan));
    outcomes.push_back(OutcomeOf(round, plan, loss, toy.milliseconds(BitsOf(plan))));
    controller->Observe(outcomes.back());
  }
  return outcomes;
}

// Returns a toy whose loss falls with enough bits and rises with too few.
Toy NeedsBits() {
  return {[](int64_t bits) { return bits < 5 ? -0.005 : 0.01; }, [](int64_t bits) { return 50.0 * bits; }};
}

TEST(MqgradTest, SmoothsAsEquationOne) {
  EXPECT_DOUBLE_EQ(MqgradSmoothed(7, 3), 0.01 * 7 + 0.99 * 3);
  MqgradController controller(1, 1);
  EXPECT_THAT(controller.smoothed_losses(), Each(0));
  const RoundPlan plan = PlanOf(2);
  controller.Observe(OutcomeOf(1, plan, 2, 1));
  EXPECT_THAT(controller.smoothed_losses(), Each(2));
  controller.Observe(OutcomeOf(2, plan, 1, 1));  // 0.01 + 1.98
  controller.Observe(OutcomeOf(3, plan, 3, 1));  // 0.03 + 1.9701
  EXPECT_THAT(controller.smoothed_losses(), ElementsAre(2, 2, 2, DoubleNear(1.99, 1e-12), DoubleNear(2.0001, 1e-12)));
}

TEST(MqgradTest, RewardsAsEquationTwo) {
  EXPECT_DOUBLE_EQ(MqgradReward({5, 4, 3, 2, 1}, 100), 3);       // beta = -1
  EXPECT_DOUBLE_EQ(MqgradReward({1, 3, 2, 5, 4}, 60), -4);       // beta = (-2 - 3 + 5 + 8) / 10 = 0.8
  EXPECT_DOUBLE_EQ(MqgradReward({11, 13, 12, 15, 14}, 60), -4);  // the bias drops out
  EXPECT_EQ(MqgradReward({4, 4, 4, 4, 4}, 60), 0);
  EXPECT_EQ(MqgradReward({5, 4, 3, 2, 1}, 0), 300);  // at least 1 ms
  EXPECT_EQ(MqgradReward({5, 4, 3, 2, 1}, 0.5), 300);
  EXPECT_GT(MqgradReward({5, 4, 3, 2, 1}, 50), MqgradReward({5, 4, 3, 2, 1}, 51));
  EXPECT_GT(MqgradReward({9, 7, 5, 3, 1}, 50), MqgradReward({5, 4, 3, 2, 1}, 50));
}

TEST(MqgradTest, AFasterFallPerMillisecondIsValuedMore) {
  const auto value_of = [](double loss, double milliseconds) {
    MqgradController controller(9, 1);
    ObserveAction(2, 2, 100, &controller);
    const QNetwork::Inputs state = controller.smoothed_losses();
    ObserveAction(4, loss, milliseconds, &controller);
    ObserveAction(2, loss, 100, &controller);
    return controller.network().Values(state)[4 - kMqgradFewestBits];
  };
  EXPECT_GT(value_of(1, 100), 0);
  EXPECT_LT(value_of(3, 100), 0);
  EXPECT_GT(value_of(1, 50), value_of(1, 100));     // the same fall in less time
  EXPECT_GT(value_of(1, 100), value_of(1.5, 100));  // more in the same time
  EXPECT_GT(value_of(1.2, 50), value_of(1, 100));   // less, but more a millisecond
}

// Algorithm 2 and equation (3), written out once more, for actions that are taken whatever the policy prefers.
TEST(MqgradTest, FollowsAlgorithmTwo) {
  MqgradController controller(21, 1);
  QNetwork q(21);
  Random random(4);
  int64_t n = 2;
  QNetwork::Inputs last_state{};
  int64_t last_bits = 0;
  double last_reward = 0;
  int rises = 0;
  for (int t = 0; t < 300; ++t) {
    const QNetwork::Inputs state = controller.smoothed_losses();
    const int64_t bits = std::min<int64_t>(8, n + static_cast<int64_t>(random.Below(2)));
    if (t > 0) {
      const QNetwork::Outputs values = q.Values(state);
      if (n < 8 && values[n - 1] > values[n - 2]) ++n, ++rises;
      if (t > 1) {
        q.Learn(last_state, last_bits - 2, last_reward + 0.9 * values[bits - 2] - q.Values(last_state)[last_bits - 2],
                0.1);
      }
    }
    double milliseconds = 0;
    for (int i = 0; i < 5; ++i) {
      const double took = random.Uniform(20, 200);
      controller.Observe(OutcomeOf(5 * t + i, PlanOf(bits), random.Uniform(0, 4), took));
      milliseconds += std::floor(took * 1000) / 1000;
    }
    last_state = state;
    last_bits = bits;
    last_reward = MqgradReward(controller.smoothed_losses(), milliseconds);
    ASSERT_EQ(controller.confident_bits(), n) << t;
    for (size_t i = 0; i < QNetwork::kParameters; ++i) {
      ASSERT_NEAR(controller.network().parameters()[i], q.parameters()[i], 1e-12) << t << ", " << i;
    }
  }
  EXPECT_GT(rises, 0);
}

TEST(MqgradTest, LearnsOnceTheNextActionIsKnown) {
  MqgradController controller(2, 1);
  ObserveAction(2, 2, 10, &controller);
  ObserveAction(2, 1, 10, &controller);
  EXPECT_EQ(controller.network().parameters(), QNetwork(2).parameters());
  controller.Observe(OutcomeOf(11, PlanOf(3), 1, 10));
  EXPECT_NE(controller.network().parameters(), QNetwork(2).parameters());
}

TEST(MqgradTest, PlansCarryTheirNumbers) {
  const MqgradController controller(1, 25);
  const RoundPlan plan = controller.Decide(1, 4000);
  EXPECT_EQ(plan.local_steps, 25);
  EXPECT_EQ(plan.first_iteration, 4000);
  EXPECT_EQ(plan.choice, 0);
  EXPECT_EQ(plan.why, "2 bits: the start, round 1 of 5");
}

TEST(MqgradTest, DecidesWithoutMemoryAndTheSameForASeed) {
  MqgradController one(5, 1), same(5, 1), other(6, 1);
  for (int64_t round = 1; round <= 500; ++round) {
    const RoundPlan plan = one.Decide(round, round);
    one.Decide(round + 1, round);  // as after an aborted round
    ASSERT_EQ(one.Decide(round, round), plan);
    ASSERT_EQ(same.Decide(round, round), plan);
    const double loss = 2 - 0.001 * static_cast<double>(round);
    for (MqgradController* controller : {&one, &same, &other}) controller->Observe(OutcomeOf(round, plan, loss, 100));
  }
  EXPECT_EQ(one.network().parameters(), same.network().parameters());
  EXPECT_NE(one.network().parameters(), other.network().parameters());
}

TEST(MqgradTest, ContinuesAfterARestartAsIfThereWereNone) {
  MqgradController first(17, 1);
  const std::vector<RoundOutcome> outcomes = Play(NeedsBits(), 203, &first);
  for (const size_t kept : {size_t{0}, size_t{1}, size_t{5}, size_t{8}, size_t{100}, outcomes.size()}) {
    MqgradController second(17, 1);
    for (size_t i = 0; i < kept; ++i) second.Observe(outcomes[i]);
    for (size_t i = kept; i < outcomes.size(); ++i) {
      ASSERT_EQ(second.Decide(outcomes[i].round, outcomes[i].round * 10), outcomes[i].plan) << kept << ", " << i;
      second.Observe(outcomes[i]);
    }
    EXPECT_EQ(second.Decide(204, 2040), first.Decide(204, 2040));
    EXPECT_EQ(second.network().parameters(), first.network().parameters());
  }
}

TEST(MqgradTest, KeepsOrAddsOneForFiveRoundsWithinTwoToEight) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    MqgradController controller(seed, 1);
    int64_t confident = 2, held = 2;
    for (int64_t round = 1; round <= 3000; ++round) {
      const RoundPlan plan = controller.Decide(round, 0);
      const int64_t bits = BitsOf(plan);
      ASSERT_THAT(bits, AllOf(Ge(2), Le(8)));
      if (round % 5 == 1) {
        ASSERT_THAT(bits - confident, AllOf(Ge(0), Le(1)));
        held = bits;
      }
      ASSERT_EQ(bits, held) << plan.why;
      ASSERT_THAT(plan.why, StartsWith(std::to_string(bits) + " bits: "));
      controller.Observe(OutcomeOf(round, plan, 1 + 0.01 * static_cast<double>(round), 10));
      ASSERT_THAT(controller.confident_bits() - confident, AllOf(Ge(0), Le(1)));
      confident = controller.confident_bits();
    }
    EXPECT_EQ(confident, 8);  // a loss that only rises
    EXPECT_EQ(held, 8);
  }
}

TEST(MqgradTest, NothingIsExploredBeyondEightBits) {
  MqgradController controller(1, 1);
  for (int64_t round = 1; round <= 2000; ++round) {
    controller.Observe(OutcomeOf(round, controller.Decide(round, 0), 1 + 0.01 * static_cast<double>(round), 10));
  }
  ASSERT_EQ(controller.confident_bits(), 8);
  for (int64_t round = 2001; round <= 2200; ++round) {
    const RoundPlan plan = controller.Decide(round, 0);
    ASSERT_EQ(plan.choice, 6);
    ASSERT_EQ(plan.why, "8 bits: kept, there are no more");
  }
}

TEST(MqgradTest, ExploresInATenthOfTheActions) {
  MqgradController controller(33, 1);
  ObserveAction(2, 2, 10, &controller);  // Q is 0 everywhere: the tie keeps
  constexpr int kRounds = 20000;
  int explored = 0;
  for (int64_t round = 1; round <= kRounds; ++round) {
    const RoundPlan plan = controller.Decide(round, 0);
    explored += static_cast<int>(plan.choice);
    ASSERT_THAT(plan.why, HasSubstr(plan.choice == 1 ? "3 bits: exploration, Q 0 against 0 for 2"
                                                     : "2 bits: kept, Q 0 against 0 for 3"));
  }
  EXPECT_NEAR(explored / double{kRounds}, 0.1, 0.01);  // 4.7 standard deviations
}

// Where Q prefers one bit more, exploration keeps the bits.
TEST(MqgradTest, ExploresTheOtherActionWhicheverItIs) {
  MqgradController controller(33, 1);
  ObserveAction(2, 2, 10, &controller);
  ObserveAction(2, 9, 10, &controller);                 // 2 bits made it rise
  controller.Observe(OutcomeOf(11, PlanOf(2), 9, 10));  // and Q learns of it
  for (int i = 0; i < 4; ++i) controller.Observe(OutcomeOf(12 + i, PlanOf(2), 9, 10));
  ASSERT_EQ(controller.confident_bits(), 2);
  int kept = 0;
  for (int64_t round = 1; round <= 20000; ++round) {
    const RoundPlan plan = controller.Decide(round, 0);
    kept += plan.choice == 0;
    ASSERT_THAT(plan.why, HasSubstr(plan.choice == 0 ? "2 bits: exploration" : "3 bits: one more"));
  }
  EXPECT_NEAR(kept / 20000.0, 0.1, 0.01);
}

TEST(MqgradTest, LearnsFromExploredBitsButDoesNotKeepThem) {
  MqgradController controller(3, 1);
  ObserveAction(2, 2, 10, &controller);
  ObserveAction(3, 3, 10, &controller);  // worse
  ObserveAction(2, 3, 10, &controller);
  EXPECT_EQ(controller.confident_bits(), 2);
  const QNetwork::Outputs values = controller.network().Values(controller.smoothed_losses());
  EXPECT_LT(values[1], 0);
  EXPECT_EQ(values[0], 0);  // the rewards of its rounds have not been told yet
}

TEST(MqgradTest, EqualLossesTeachNothing) {
  MqgradController controller(4, 1);
  const Toy toy = {[](int64_t bits) { return 0.0; }, [](int64_t bits) { return 0.0; }, 0.7};
  Play(toy, 5000, &controller);
  EXPECT_EQ(controller.network().parameters(), QNetwork(4).parameters());
  EXPECT_EQ(controller.confident_bits(), 2);
}

TEST(MqgradTest, ExtremesStayFinite) {
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const double losses[] = {0, 1, -1, 1e-300, 1e6, -1e9, kMost, -kMost, kInfinity, -kInfinity, std::nan("")};
  const int64_t durations[] = {0, 0, 1, 1000, kLongest, -5};
  const int64_t choices[] = {0, 1, 6, 7, -1, kLongest, -kLongest};
  Random random(12);
  MqgradController controller(12, 1);
  for (int64_t round = 1; round <= 50000; ++round) {
    const RoundPlan plan = controller.Decide(round, 0);
    ASSERT_THAT(plan.choice, AllOf(Ge(0), Le(6)));
    RoundOutcome outcome = OutcomeOf(round, plan, losses[random.Below(11)], 0);
    outcome.duration_us = durations[random.Below(6)];
    if (random.Below(10) == 0) outcome.plan.choice = choices[random.Below(7)];
    controller.Observe(outcome);
    ASSERT_TRUE(AllFinite(controller.network().parameters())) << round;
    for (const double value : controller.network().Values(controller.smoothed_losses())) {
      ASSERT_TRUE(std::isfinite(value)) << round;
    }
  }
}

// Losses of every usual size: without the bound of the step, Q is off by orders of magnitude from a loss of 3 or so.
TEST(MqgradTest, ValuesStayNearTheReturnsWhateverTheLoss) {
  for (const double loss : {0.5, 2.3, 10.0, 1000.0}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      MqgradController controller(seed, 1);
      const Toy toy = {[](int64_t bits) { return 1e-5; }, [](int64_t bits) { return 50.0 * bits; }, loss};
      for (int stretch = 0; stretch < 50; ++stretch) {
        Play(toy, 100, &controller);
        // The largest reward is 1e-5 * 300 / 500 ms; without end, ten times that. Twice, for the restarts of the loss.
        for (const double value : controller.network().Values(controller.smoothed_losses())) {
          ASSERT_LE(std::abs(value), 2 * 6e-5) << loss << ", " << seed;
        }
      }
    }
  }
}

// The losses are the same; only the time of a round tells the bits apart.
TEST(MqgradTest, LearnsThatMoreBitsPay) {
  const Toy toy = {[](int64_t bits) { return 1e-5; }, [](int64_t bits) { return 800.0 / (bits * bits); }};
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MqgradController controller(seed, 1);
    Play(toy, 30000, &controller);
    EXPECT_GE(controller.confident_bits(), 7) << seed;
  }
}

TEST(MqgradTest, LearnsThatMoreBitsDoNotPay) {
  const Toy toy = {[](int64_t bits) { return 1e-5; }, [](int64_t bits) { return 12.5 * (bits * bits); }};
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MqgradController controller(seed, 1);
    Play(toy, 30000, &controller);
    EXPECT_LE(controller.confident_bits(), 3) << seed;
  }
}

TEST(MqgradTest, RaisesTheBitsWhereTheLossNeedsThem) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    MqgradController controller(seed, 1);
    Play(NeedsBits(), 200, &controller);
    EXPECT_GE(controller.confident_bits(), 5) << seed;
  }
}

}  // namespace
}  // namespace terse
