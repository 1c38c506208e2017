#include "core/learning_rate.h"

#include "gtest/gtest.h"

namespace terse {
namespace {

TEST(LearningRateTest, StaysWithoutASchedule) {
  TrainSpec train;
  train.optimizer.learning_rate = 0.125;
  for (const int64_t iteration : {0, 1, 1'000'000}) EXPECT_EQ(LearningRateAt(train, iteration), 0.125);
}

// ResNet32's row of Table III of the SBC paper: 0.01, times 0.1 at 30000 and 50000.
TEST(LearningRateTest, FallsAtTheIterationsGiven) {
  TrainSpec train;
  train.optimizer.learning_rate = 0.01;
  train.schedule.factor = 0.1;
  train.schedule.at = {30000, 50000};
  EXPECT_EQ(LearningRateAt(train, 29999), 0.01);
  EXPECT_EQ(LearningRateAt(train, 30000), 0.01 * 0.1);
  EXPECT_EQ(LearningRateAt(train, 49999), 0.01 * 0.1);
  EXPECT_EQ(LearningRateAt(train, 50000), 0.01 * 0.1 * 0.1);
}

// WordLSTM's row: 1.0, times 0.8 at 24000 + 1200 n.
TEST(LearningRateTest, FallsAgainAndAgain) {
  TrainSpec train;
  train.optimizer.learning_rate = 1;
  train.schedule.factor = 0.8;
  train.schedule.from = 24000;
  train.schedule.every = 1200;
  EXPECT_EQ(DecaysBefore(train.schedule, 23999), 0);
  EXPECT_EQ(DecaysBefore(train.schedule, 24000), 1);
  EXPECT_EQ(DecaysBefore(train.schedule, 25199), 1);
  EXPECT_EQ(DecaysBefore(train.schedule, 25200), 2);
  EXPECT_NEAR(LearningRateAt(train, 59999), 0.00124, 0.00001);  // after 30 decays
  train.schedule.at = {10};
  EXPECT_EQ(DecaysBefore(train.schedule, 24000), 2) << "both kinds together";
}

}  // namespace
}  // namespace terse
