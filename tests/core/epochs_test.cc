#include "core/epochs.h"

#include "gtest/gtest.h"

namespace terse {
namespace {

RunConfig Epochs(int64_t length) {
  RunConfig config;
  config.server.epoch_length = length;
  return config;
}

TEST(Epochs, BeginWithASnapshot) {
  const RunConfig config = Epochs(3);
  for (int64_t version = 0; version < 12; ++version) {
    EXPECT_EQ(EpochOf(config, version), version / 4);
    EXPECT_EQ(SnapshotBefore(config, version), version / 4 * 4);
    EXPECT_EQ(StandsAlone(config, version), version % 4 == 0);
    EXPECT_EQ(TaskFrom(config, version), version % 4 == 0 ? ClientTask::kFullGradient : ClientTask::kGradientStep);
  }
}

TEST(Epochs, WithoutThemEveryVersionStandsAlone) {
  for (const int64_t version : {0, 1, 7}) {
    EXPECT_TRUE(StandsAlone(Epochs(0), version));
    EXPECT_EQ(TaskFrom(Epochs(0), version), ClientTask::kTrain);
    EXPECT_TRUE(IsOfSameUse(Epochs(0), 0, version));
  }
  EXPECT_FALSE(HasEpochs(Epochs(0)));
}

TEST(Epochs, AGradientIsOfUseInItsEpoch) {
  const RunConfig config = Epochs(3);
  EXPECT_TRUE(IsOfSameUse(config, 4, 4));
  EXPECT_FALSE(IsOfSameUse(config, 4, 5)) << "a full gradient is of use to its snapshot alone";
  EXPECT_TRUE(IsOfSameUse(config, 5, 7));
  EXPECT_FALSE(IsOfSameUse(config, 5, 8));
  EXPECT_FALSE(IsOfSameUse(config, 5, 9));
}

TEST(Epochs, WhatIsOfNoUseStaysSo) {
  for (const int64_t length : {1, 2, 3}) {
    for (int64_t base = 0; base < 10; ++base) {
      bool useful = true;
      for (int64_t head = base; head < 20; ++head) {
        const bool now = IsOfSameUse(Epochs(length), base, head);
        EXPECT_TRUE(useful || !now) << length << " " << base << " " << head;
        useful = now;
      }
    }
  }
}

}  // namespace
}  // namespace terse
