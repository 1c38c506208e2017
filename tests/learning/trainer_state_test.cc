#include "learning/trainer_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace terse {
namespace {

using namespace std::string_literals;

const Id128 kIdentity = {1, 2};
const TrainerStateShape kShape = {2, 3, {4, 0, 4}};

std::string Encoded() {
  return EncodeTrainerState({3, 77}, {12, {{1.5f, -2.0f, 0.0f}, {4.0f, 5.0f, 6.0f}}}, {"four", "", "fi\0v"s},
                            kIdentity);
}

TEST(TrainerStateTest, RoundTrip) {
  const TrainerState state = DecodeTrainerState(Encoded(), kIdentity, kShape).value();
  EXPECT_EQ(state.position.epoch, 3);
  EXPECT_EQ(state.position.offset, 77);
  EXPECT_EQ(state.optimizer.step, 12);
  EXPECT_EQ(state.optimizer.slots, (std::vector<std::vector<float>>{{1.5f, -2.0f, 0.0f}, {4.0f, 5.0f, 6.0f}}));
  EXPECT_EQ(state.extras, (std::vector<std::string>{"four", "", "fi\0v"s}));
}

TEST(TrainerStateTest, RefusesEveryTruncationAndEveryFlippedByte) {
  const std::string bytes = Encoded();
  ASSERT_EQ(bytes.size(), 8u + 16 + 24 + 24 + 8 + 16);
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
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {1, 3, {4, 0, 4}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 4, {4, 0, 4}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 3, {4, 5}}).ok());
  EXPECT_FALSE(DecodeTrainerState(Encoded(), kIdentity, {2, 3, {}}).ok());
}

}  // namespace
}  // namespace terse
