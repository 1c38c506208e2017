#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "coordinator/server_optimizer/server_optimizer_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/run_config_reference.h"
#include "tests/testing/paths.h"

namespace terse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::vector<float>> kAverages = {{1, -0.5f, 0}, {0.25f, -2, 0.125f}, {-0.75f, 1, 4}};

ServerOptimizerSpec OptimizerOf(const std::string& name) {
  ServerOptimizerSpec spec;
  spec.name = name;
  spec.learning_rate = 0.5;
  spec.momentum = 0.75;
  spec.tau = 0.1;
  return spec;
}

std::vector<float> Fresh(const ServerOptimizer& optimizer, size_t parameters) {
  std::vector<float> state(optimizer.vectors() * parameters, -1.0f);
  optimizer.Begin(absl::MakeSpan(state));
  return state;
}

// Row name to its steps, by an independent program (tests/golden/make_server_optimizer_golden.py).
std::map<std::string, std::vector<std::vector<double>>> Golden() {
  std::map<std::string, std::vector<std::vector<double>>> steps;
  std::ifstream file(InSource("tests/golden/server_optimizers.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::vector<double> step(3);
    words >> name >> step[0] >> step[1] >> step[2];
    steps[name].push_back(step);
  }
  return steps;
}

TEST(ServerOptimizers, FollowTheFormulasOfTheirPapers) {
  const auto golden = Golden();
  ASSERT_EQ(golden.size(), 5);
  for (const auto& [name, expected] : golden) {
    ServerOptimizerSpec spec = OptimizerOf(name == "nesterov" ? "sgd" : name);
    spec.nesterov = name == "nesterov";
    const auto optimizer = *MakeServerOptimizer(spec);
    EXPECT_EQ(optimizer->name(), spec.name);
    std::vector<float> state = Fresh(*optimizer, 3);
    ASSERT_EQ(expected.size(), kAverages.size()) << name;
    for (size_t round = 0; round < expected.size(); ++round) {
      std::vector<float> step = kAverages[round];
      std::vector<float> next(state.size());
      optimizer->Step(absl::MakeSpan(step), state, absl::MakeSpan(next));
      state.swap(next);
      for (size_t i = 0; i < step.size(); ++i) {
        EXPECT_NEAR(step[i], expected[round][i], 2e-6 * std::abs(expected[round][i])) << name << " " << round;
      }
    }
  }
}

TEST(ServerOptimizers, WithoutMomentumOnlyTheLearningRateIsLeft) {
  ServerOptimizerSpec spec = OptimizerOf("sgd");
  spec.momentum = 0;
  const auto optimizer = *MakeServerOptimizer(spec);
  EXPECT_EQ(optimizer->vectors(), 0);
  std::vector<float> step = {1, -3};
  optimizer->Step(absl::MakeSpan(step), {}, {});
  EXPECT_THAT(step, ElementsAre(0.5f, -1.5f));
}

TEST(ServerOptimizers, StayFiniteForTheLargestAverages) {
  for (const std::string& name : ServerOptimizerNames()) {
    ServerOptimizerSpec spec = OptimizerOf(name);
    spec.learning_rate = 1000;
    spec.momentum = spec.beta1 = 0.9999;
    spec.beta2 = 0;
    spec.tau = 1e-9;
    const auto optimizer = *MakeServerOptimizer(spec);
    if (optimizer == nullptr) continue;
    std::vector<float> state = Fresh(*optimizer, 2);
    for (int round = 0; round < 300; ++round) {
      // Once large, then nothing: the momentum lasts longer than what it is divided by.
      std::vector<float> step = {round < 200 ? kMostAverage : 0.0f, round == 0 ? -kMostAverage : 0.0f};
      std::vector<float> next(state.size());
      optimizer->Step(absl::MakeSpan(step), state, absl::MakeSpan(next));
      state.swap(next);
      for (float value : step) ASSERT_TRUE(std::isfinite(value)) << name << " " << round;
      for (float value : state) ASSERT_TRUE(std::isfinite(value)) << name << " " << round;
    }
  }
}

TEST(ServerOptimizers, TheSchemaKnowsEveryRow) {
  std::string allowed;
  for (const RunConfigKey& key : RunConfigKeys()) {
    if (key.key == "server.optimizer") allowed = key.allowed;
  }
  EXPECT_EQ(allowed, "'average', 'sgd', 'adam', 'yogi', 'adagrad', 'svrg' or 'acc_svrg'") << "the last two: svrg_step";
  EXPECT_THAT(ServerOptimizerNames(), ElementsAre("average", "sgd", "adam", "yogi", "adagrad"));
}

TEST(ServerOptimizers, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const absl::Status status = MakeServerOptimizer(OptimizerOf("lion")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'lion'; known ones are average, sgd, adam, yogi, adagrad"));
}

}  // namespace
}  // namespace terse
