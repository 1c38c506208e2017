#include "learning/trainer_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

const Id128 kIdentity = {1, 2};
const TrainerStateShape kShape = {2, 3, {1, 0, 2}};

std::string Encoded() {
  TrainerState state;
  state.position = {3, 77};
  state.optimizer.step = 12;
  state.optimizer.slots = {{1.5f, -2.0f, 0.0f}, {4.0f, 5.0f, 6.0f}};
  state.extras = {{7.0f}, {}, {8.0f, 9.0f}};
  return EncodeTrainerState(state, kIdentity);
}

TEST(TrainerStateTest, RoundTrip) {
  const TrainerState state = DecodeTrainerState(Encoded(), kIdentity, kShape).value();
  EXPECT_EQ(state.position.epoch, 3);
  EXPECT_EQ(state.position.offset, 77);
  EXPECT_EQ(state.optimizer.step, 12);
  EXPECT_EQ(state.optimizer.slots, (std::vector<std::vector<float>>{{1.5f, -2.0f, 0.0f}, {4.0f, 5.0f, 6.0f}}));
  EXPECT_EQ(state.extras, (std::vector<std::vector<float>>{{7.0f}, {}, {8.0f, 9.0f}}));
}

TEST(TrainerStateTest, RefusesEveryTruncationAndEveryFlippedByte) {
  const std::string bytes = Encoded();
  ASSERT_EQ(bytes.size(), 8u + 16 + 24 + 24 + 12 + 16);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(DecodeTrainerState(bytes.substr(0, i), kIdentity, kShape).status().code(), absl::StatusCode::kDataLoss);
    std::string flipped = bytes;
    flipped[i] ^= 0x10;
    EXPECT_EQ(DecodeTrainerState(flipped, kIdentity, kShape).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  EXPECT_FALSE(DecodeTrainerState(bytes + "x", kIdentity, kShape).ok());
}

TEST(TrainerStateTest, RefusesAnotherIdentityOrSize) {
  EXPECT_THAT(std::string(DecodeTrainerState(Encoded(), {1, 3}, kShape).status().message()),
              ::testing::HasSubstr("belongs to another"));
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {1, 3, {1, 0, 2}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 4, {1, 0, 2}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 3, {1, 1}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 3, {}}).ok());
}

}  // namespace
}  // namespace terse
